#!/usr/bin/env python3
"""deja check on jobs of torch.distributed: what only their parameters, batches and tensors show."""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
import torch_jobs  # noqa: E402

SCORE = harness.ROOT / "tests" / "zoo" / "score.py"
CASES = ("torch_metric_keys", "torch_not_waited", "torch_resumed", "torch_set_epoch", "torch_unused_parameters")


class Zoo(torch_jobs.TorchTest):
    def test_finds_what_is_wrong_and_nothing_else(self):
        done = subprocess.run([sys.executable, SCORE, "--build", harness.BUILD, *CASES], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}{done.stderr}")
        self.assertIn(f"{len(CASES)} of {len(CASES)} right", done.stdout)


if __name__ == "__main__":
    harness.main()
