"""SIGCHLD in a program that has a descriptor to be wakened by, as asyncio's event loop has.

The clock of the rank shows whether a wait that the signal ended has ended in the replay, too.
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
PROGRAMS = Path(__file__).resolve().parents[2] / "apps" / "python"


class WakenedParents(harness.DejaTest):
    def assertReadsTheSameClocks(self, how):
        run = self.assertPrintsTheSameAgain(sys.executable, PROGRAMS / "wakened_parent.py", how, replays=REPLAYS)
        self.assertIn("handler at ", run.stdout)

    def test_that_polls(self):
        self.assertReadsTheSameClocks("polls")

    def test_that_waits_for_another_child(self):
        self.assertReadsTheSameClocks("reaps")

    def test_that_reads(self):
        self.assertReadsTheSameClocks("reads")

    def test_that_sleeps(self):
        self.assertReadsTheSameClocks("sleeps")

    def test_that_waits_for_a_lock(self):
        self.assertReadsTheSameClocks("waits")


if __name__ == "__main__":
    harness.main()
