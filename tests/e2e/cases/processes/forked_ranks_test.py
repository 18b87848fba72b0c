"""Ranks that are children. One that was forked begins its replay as its parent began, and goes on as the rank. One that
another rank has started is part of that one's replay, where that waits for it.

DEJA_REPLAYS says how often each rank is replayed (default 3).
"""
import os
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))


def without_numbers(text):
    return sorted(re.sub(r"\d{3,}", "N", text).splitlines())


class ForkedRanks(harness.DejaTest):
    PROGRAM = "forked_ranks"

    def recorded(self, *args):
        plain = self.checked(self.command([harness.app(self.PROGRAM), *args]))
        run = self.checked(self.deja("record", "--out", self.trace_path(), "--", harness.app(self.PROGRAM), *args))
        self.assertEqual(without_numbers(run.stdout), without_numbers(plain.stdout))
        return run

    def lines_of(self, run, rank):
        return [line for line in run.stdout.splitlines() if re.match(rf"rank {rank}(,| has)", line) and "served" not in line]

    def assertReplays(self, run, ranks, trace="run.deja"):
        for rank in range(ranks):
            for _ in range(REPLAYS):
                again = self.checked(self.replay(rank, trace=trace))
                self.assertEqual(self.lines_of(again, rank), self.lines_of(run, rank), f"\n{again}")
                self.assertNotIn("diverged", again.stdout)
                self.assertRegex(again.stdout, rf"rank {rank}: exit {3 if rank else 0}, the same as recorded; 1 child process replayed; 3 collectives served")
                for other in range(ranks):
                    if other != rank:
                        self.assertEqual(self.lines_of(again, other), [], f"\n{again}")

    def test_each_rank_replays(self):
        self.assertReplays(self.recorded("--ranks=3"), 3)
        self.assertVerifies()

    def test_forked_by_a_forked_child(self):
        self.assertReplays(self.recorded("--again"), 2)

    def test_a_launcher_that_waits_for_one_rank_before_it_forks_the_next(self):
        self.assertReplays(self.recorded("--ranks=3", "--waits"), 3)

    def test_a_launcher_that_takes_much_before_it_forks(self):
        self.assertReplays(self.recorded("--ranks=2", "--draws=120000"), 2)

    def test_all_ranks_in_one_command(self):
        self.recorded()
        run = self.deja("replay", self.trace_path(), "--all")
        self.assertEqual(len(re.findall(r"rank \d: exit \d, the same as recorded", run.stdout)), 2, f"\n{run}")

    def test_a_bundle_has_what_the_rank_was_before(self):
        run = self.recorded()
        self.checked(self.deja("pack", self.trace_path(), "--ranks", "1", "--out", self.dir / "one.zip"))
        shutil.rmtree(self.trace_path())
        again = self.checked(self.replay(1, trace="one.zip"))
        self.assertEqual(self.lines_of(again, 1), self.lines_of(run, 1))

    def test_without_the_parents_recording(self):
        self.recorded()
        for folder in self.trace_path().glob("child-*"):
            shutil.rmtree(folder)
        run = self.checked(self.replay(1), harness.EXIT_FAILURE)
        self.assertIn("rank 1: its life before the fork is missing", run.stderr)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_stops_in_the_rank(self):
        self.recorded()
        run = self.checked(self.replay(1, options=["--gdb", "--gdb-command", "break ncclAllReduce", "--gdb-command", "run",
                                                   "--gdb-command", "backtrace", "--gdb-command", "info threads"]))
        self.assertIn("in Rank (", run.stdout, f"\n{run}")
        self.assertNotIn("the launcher is done", run.stdout)


class LaunchingRank(harness.DejaTest):
    def setUp(self):
        self.run_ = self.checked(self.deja("record", "--out", self.trace_path(), "--",
                                           harness.app("launching_rank")))
        self.assertRegex(self.run_.stdout, r"rank 0: process \d+ ended with 3")

    def lines_of(self, run, rank):
        return [line for line in run.stdout.splitlines() if re.match(rf"rank {rank}(, step|: process)", line)]

    def test_each_rank_replays(self):
        for rank in range(2):
            for _ in range(REPLAYS):
                again = self.checked(self.replay(rank))
                self.assertEqual(self.lines_of(again, rank), self.lines_of(self.run_, rank), f"\n{again}")
                self.assertEqual(self.lines_of(again, 1 - rank), [], f"\n{again}")
                self.assertRegex(again.stdout, rf"rank {rank}: exit {3 * rank}, the same as recorded; .*5 collectives served")
                self.assertNotIn("ran live", again.stdout)

    def test_a_bundle_without_the_rank_that_was_started(self):
        self.checked(self.deja("pack", self.trace_path(), "--ranks", "1", "--out", self.dir / "one.zip"))
        again = self.checked(self.replay(1, trace="one.zip"))
        self.assertEqual(self.lines_of(again, 1), self.lines_of(self.run_, 1))


if __name__ == "__main__":
    harness.main()
