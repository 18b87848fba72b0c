"""A program that makes no communicator, recorded by `deja record --single` and replayed."""
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

UNSEEDED = """
import os, random, sys, time, uuid
print(os.urandom(8).hex(), random.random(), time.time(), uuid.uuid4(), os.getpid(), sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""

ENDLESS = """
import os, time
while True:
    print(os.urandom(8).hex(), flush=True)
    time.sleep(0.01)
"""


class Single(harness.DejaTest):
    def record_single(self, *command, code=0, **kwargs):
        return self.checked(super().record_single(*command, **kwargs), code)

    def assertReplays(self, run, rank=0, trace="run.deja"):
        again = self.checked(self.replay(rank, trace=trace))
        self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
        self.assertIn("the same as recorded", again.stdout)

    def test_a_script(self):
        run = self.record_single(sys.executable, "-c", UNSEEDED, "0")
        self.assertEqual(self.rank_folders(), ["rank-00000"])
        self.assertVerifies()
        self.assertEqual(self.info_json()["world_size"], 1)
        for _ in range(2):
            self.assertReplays(run)

    def test_the_only_rank_need_not_be_named(self):
        run = self.record_single(sys.executable, "-c", UNSEEDED, "0")
        again = self.checked(self.deja("replay", self.trace_path()))
        self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_one_of_several_ranks_must_be_named(self):
        self.checked(self.record("reduces", n=2))
        asked = self.checked(self.deja("replay", self.trace_path()), 2)
        self.assertIn("it has 2 ranks; choose with --rank R", asked.stderr)

    def test_exit_code(self):
        run = self.record_single(sys.executable, "-c", UNSEEDED, "3", code=3)
        self.assertReplays(run)

    def test_wrappers_that_exec_on_hand_over(self):
        run = self.record_single("env", "A=b", "nice", sys.executable, "-c", UNSEEDED, "0")
        self.assertEqual(self.rank_folders(), ["rank-00000"])
        self.assertIn("python", self.info_json()["executable"])
        self.assertReplays(run)

    def test_a_program_that_makes_a_communicator_is_one_rank_too(self):
        run = self.record("reduces", n=2, options=["--single"])
        self.checked(run)
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001"])
        self.checked(self.replay(1))

    def test_ranks_without_a_communicator(self):
        self.checked(self.deja("record", "--loopback", "-n", 2, "--single", "--out", self.trace_path(), "--",
                               sys.executable, "-c", UNSEEDED, "0"))
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001"])
        self.checked(self.replay(1))

    def test_a_killed_program_replays_to_where_it_was(self):
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--",
                              sys.executable, "-c", ENDLESS])
        said = [process.stdout.readline() for _ in range(10)]
        child = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        os.kill(child, signal.SIGKILL)
        run = self.finish(process)
        self.assertEqual(run.code, 137)
        lines = b"".join(said).decode().splitlines() + run.stdout.splitlines()
        again = self.checked(self.replay(0))
        # The recording may hold bytes that the program had no time to print.
        self.assertIn(len(again.stdout.splitlines()) - 1, (len(lines), len(lines) + 1))
        self.assertEqual(again.stdout.splitlines()[:len(lines)], lines)
        self.assertIn("SIGKILL", again.stdout.splitlines()[-1])

    def test_without_the_option_nothing_is_recorded_and_the_option_is_named(self):
        run = self.checked(self.deja("record", "--out", self.trace_path(), "--", "true"))
        self.assertIn("--single", run.stderr)
        self.assertFalse(self.trace_path().exists())


if __name__ == "__main__":
    harness.main()
