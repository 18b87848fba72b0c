"""PyTorch's data loader in a single process: the order of its workers' batches, and iterators dropped half way."""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
import torch_jobs  # noqa: E402

APPS = harness.ROOT / "tests" / "e2e" / "apps"
REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))


@unittest.skipUnless(torch_jobs.VERSION, "python3-torch is not installed")
class TorchLoaders(harness.DejaTest):
    def assertReplaysTheSame(self, *words):
        self.assertReplaysThoughRandom(torch_jobs.PYTHON, *words, replays=REPLAYS)

    def test_forked_workers(self):
        self.assertReplaysTheSame(APPS / "real" / "data_loader.py")

    def test_workers_of_a_fork_server(self):
        self.assertReplaysTheSame(APPS / "real" / "data_loader.py", "forkserver")

    def test_iterators_that_are_dropped(self):
        self.assertReplaysTheSame(APPS / "torch" / "standalone" / "loader_ways.py", "dropped")


if __name__ == "__main__":
    harness.main()
