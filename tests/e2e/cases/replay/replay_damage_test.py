"""Replays of damaged traces: exit 3 and a line, but for what the damage cannot have caused."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

STEPS = ("--steps", "600", "--no-snapshot")


class Damage(harness.DejaTest):
    def setUp(self):
        self.program = harness.app("replay_trainer")
        self.checked(self.record("replay_trainer", STEPS, n=2))

    def damaged(self, at, rank=1, size=64):
        """Overwrites what is at this part of the rank's events."""
        events = self.trace_path() / f"rank-{rank:05}" / "events.deja"
        data = bytearray(events.read_bytes())
        middle = int(len(data) * at)
        data[middle:middle + size] = bytes(size)
        events.write_bytes(data)
        self.assertIn("NOT SOUND", self.checked(self.deja("verify", self.trace_path()), harness.EXIT_DATA_LOSS).stdout)

    def run_it(self, *options, code, program=()):
        run = self.checked(self.deja("replay", self.trace_path(), "--rank", 1, *options, *(["--", *program] if program else [])), code)
        self.assertRegex(run.stderr, r"deja: rank 1: its recording is DAMAGED: \S*events.deja, offset \d+: .*`deja verify` lists all damage")
        return run

    def test_events_in_the_middle(self):
        self.damaged(0.6)
        lost = self.run_it(code=harness.EXIT_DATA_LOSS)
        self.assertIn("; the recording is DAMAGED\n", lost.stdout)
        self.assertIn("what differs may come from the damage alone", lost.stdout)
        self.assertTrue(self.run_it("--json", code=harness.EXIT_DATA_LOSS).json()["ranks"][0]["by_damage"])
        self.run_it("--gdb-command", "quit", code=harness.EXIT_DATA_LOSS)
        self.checked(self.replay(0))

        # What differs before the damage is no matter of the damage; what differs after it may be.
        early = self.run_it(code=harness.EXIT_DIVERGED, program=[self.program, *STEPS, "--flip-step", "2", "--flip-loss"])
        self.assertIn("step 2, AllGather ", early.stdout)
        self.assertIn("what differs does not come from the damage", early.stdout)

        both = self.deja("replay", self.trace_path(), "--all", "--json")
        self.assertEqual([rank["verdict"] for rank in self.checked(both, harness.EXIT_DATA_LOSS).json()["ranks"]], ["same", "diverged"])

    def test_the_index_alone(self):
        """No event is lost by it: a divergence is one."""
        size = (self.trace_path() / "rank-00001" / "events.deja").stat().st_size
        self.damaged((size - 6000) / size)
        same = self.run_it(code=harness.EXIT_DATA_LOSS)
        self.assertIn("it is in the index, and no event is lost", same.stderr)
        self.assertIn("rank 1: exit 0, the same as recorded; ", same.stdout)
        self.run_it(code=harness.EXIT_DIVERGED, program=[self.program, *STEPS, "--flip-step", "500", "--flip-loss"])

    def test_a_recording_that_was_cut_short_is_not_damaged(self):
        shutil.rmtree(self.trace_path())
        self.record("replay_trainer", ["--fault", "crash", "--fault-step", 7, "--fault-rank", 1], n=2)
        run = self.replay(1)
        self.assertEqual(run.code, harness.EXIT_OK, f"\n{run}")
        self.assertNotIn("DAMAGED", run.stdout + run.stderr)


if __name__ == "__main__":
    harness.main()
