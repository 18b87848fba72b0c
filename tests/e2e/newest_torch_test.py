"""The newest torch that PyPI has, as `pip install torch` gives it to a user: the names in its groups, and jobs of it.

usage: newest_torch_test.py --install     installs it into a folder of the build, which stays
       newest_torch_test.py [TEST ...]    runs the tests

Skipped where there is no venv module, or PyPI cannot be reached.
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
INSTALLED = FOLDER / "installed"  # is there once pip has said that this torch is the newest
CASES = ROOT / "tests" / "e2e" / "cases"
INSTALLATION_S = 1800  # for 5 GB


def install():
    """An error in one line; none: it is there."""
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-cache-dir", "--upgrade"]
    commands = [[*pip, "torch", "numpy"]]
    if not INSTALLED.exists():  # an installation that broke off is no ground to build on
        commands.insert(0, [sys.executable, "-m", "venv", "--clear", FOLDER])
    INSTALLED.unlink(missing_ok=True)
    for command in commands:
        try:
            made = subprocess.run(command, capture_output=True, text=True, timeout=INSTALLATION_S, check=False)
        except subprocess.TimeoutExpired:
            return f"pip took more than {INSTALLATION_S} s"
        if made.returncode != 0:
            return (made.stderr.strip() or made.stdout.strip() or f"exit {made.returncode}").splitlines()[-1]
    INSTALLED.touch()
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

    def test_spawned_ranks(self):
        self.assertPasses(CASES / "torch" / "torch_launches_test.py",
                          "TorchLaunches.test_ranks_that_the_program_spawns_with_tensors_and_a_queue")

    def test_loader(self):
        self.assertPasses(CASES / "inputs" / "torch_loaders_test.py")


if __name__ == "__main__":
    if sys.argv[1:] == ["--install"]:
        problem = install()
        if problem:
            print(f"the newest torch is not installed: {problem}")
            sys.exit(77)
    elif not INSTALLED.exists():
        print("the newest torch is not installed")
        sys.exit(77)
    else:
        unittest.main(verbosity=2)
