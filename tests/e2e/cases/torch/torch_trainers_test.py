"""Deja's callbacks in the trainers of transformers and Lightning: what a replay, from the start or from a checkpoint, computes."""
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import APPS, PYTHON, VERSION, TorchTest, of_rank  # noqa: E402

PACKAGE = {"PYTHONPATH": harness.ROOT / "python", "HF_HUB_OFFLINE": "1"}


def has(module):
    return VERSION and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


class TorchTrainers(TorchTest):
    def assertReplaysFromTheMiddle(self, script):
        env = {**PACKAGE, "LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "none"}
        argv = [f"{name}={value}" for name, value in env.items()] + [PYTHON, APPS / f"{script}.py", self.dir / "out"]
        run = self.checked(self.record("env", argv, n=2, timeout=300))
        self.assertRanksReplay(run, 2)
        for rank in range(2):
            lines = of_rank(rank, run.stdout)
            self.assertIn(" weights ", lines[-1])
            late = self.checked(self.replay(rank, options=["--from-step", "5"], env={"MASTER_PORT": "1"}))
            self.assertRegex(late.stderr, r"from the checkpoint at step [45]\n")
            self.assertIn("all equal", late.stdout)
            printed = of_rank(rank, late.stdout)
            self.assertLess(len(printed), len(lines))
            self.assertEqual(printed[-len(lines) // 2:], lines[-len(lines) // 2:])

    @unittest.skipUnless(has("transformers"), f"{PYTHON} has no transformers")
    def test_transformers(self):
        self.assertReplaysFromTheMiddle("hf_trainer")

    @unittest.skipUnless(has("lightning"), f"{PYTHON} has no lightning")
    def test_lightning(self):
        self.assertReplaysFromTheMiddle("lightning_trainer")


if __name__ == "__main__":
    harness.main()
