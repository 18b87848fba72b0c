"""The newest torch that PyPI has, as `pip install torch` gives it to a user: the names in its groups, and jobs of it.

It is installed into a folder of the build, which stays. Skipped where there is no venv module, or PyPI cannot be
reached.
"""
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build"))
FOLDER = BUILD / "newest-torch"
PYTHON = FOLDER / "bin" / "python"
CASES = ROOT / "tests" / "e2e" / "cases"


def install():
    """An error in one line; none: it is there."""
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-cache-dir", "--upgrade"]
    for command in ([sys.executable, "-m", "venv", FOLDER], [*pip, "torch", "numpy"]):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            return (made.stderr.strip() or made.stdout.strip() or f"exit {made.returncode}").splitlines()[-1]
    return None


class NewestTorch(unittest.TestCase):
    def assertPasses(self, case, *tests):
        run = subprocess.run([sys.executable, case, *tests], env={**os.environ, "DEJA_TORCH_PYTHON": str(PYTHON)}, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertNotIn("skipped", run.stdout)

    def test_names(self):
        self.assertPasses(ROOT / "tests" / "conformance" / "torch" / "torch_names_test.py")

    def test_jobs(self):
        self.assertPasses(CASES / "torch" / "torch_distributed_test.py", *(f"TorchDistributed.{name}" for name in (
            "test_data_parallel", "test_every_operation", "test_operations_of_new_names", "test_fully_shard",
            "test_a_loop_that_is_left_early")))

    def test_ranks_that_the_program_spawns(self):
        self.assertPasses(CASES / "torch" / "torch_launches_test.py",
                          "TorchLaunches.test_ranks_that_the_program_spawns_with_tensors_and_a_queue")

    def test_a_loader(self):
        self.assertPasses(CASES / "inputs" / "torch_loaders_test.py")


if __name__ == "__main__":
    problem = install()
    if problem:
        print(f"the newest torch is not installed: {problem}")
        sys.exit(77)
    unittest.main(verbosity=2)
