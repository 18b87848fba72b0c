"""Replays of damaged traces: exit 3 and a line, but for what the damage cannot have caused."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

STEPS = ("--steps", "600", "--no-snapshot")


def damage(test, file, *parts):
    path = test.trace_path() / file
    data = bytearray(path.read_bytes())
    for part in parts:
        at = int(len(data) * part)
        data[at:at + 64] = bytes(64)
    path.write_bytes(data)
    test.assertIn("NOT SOUND", test.checked(test.deja("verify", test.trace_path()), harness.EXIT_DATA_LOSS).stdout)


class Damage(harness.DejaTest):
    def setUp(self):
        self.program = harness.app("replay_trainer")
        self.checked(self.record("replay_trainer", STEPS, n=2))

    def damaged(self, *parts, file="rank-00001/events.deja"):
        """Overwrites 64 bytes at these parts of the file."""
        damage(self, file, *parts)

    def run_it(self, *options, code, program=()):
        run = self.checked(self.deja("replay", self.trace_path(), "--rank", 1, *options, *(["--", *program] if program else [])), code)
        self.assertRegex(run.stderr, r"deja: rank 1: its recording is DAMAGED: \S*\.deja, offset \d+: .*`deja verify` lists all damage")
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

    def test_header_and_index(self):
        """No event is lost by it: a divergence is one. The header is in each file of the rank."""
        size = (self.trace_path() / "rank-00001" / "events.deja").stat().st_size
        self.damaged((size - 6000) / size)
        same = self.run_it(code=harness.EXIT_DATA_LOSS)
        self.assertIn("it is outside the events, of which none is lost", same.stderr)
        self.assertIn("rank 1: exit 0, the same as recorded; ", same.stdout)
        self.run_it(code=harness.EXIT_DIVERGED, program=[self.program, *STEPS, "--flip-step", "500", "--flip-loss"])
        self.damaged(100 / size)
        self.assertIn("DAMAGED", self.checked(self.deja("info", self.trace_path()), harness.EXIT_DATA_LOSS).stderr)

    def test_results(self):
        """Their bytes are not looked at before one of them is needed."""
        self.damaged(*(part / 50 for part in range(15, 45)), file="rank-00001/payloads.deja")
        lost = self.run_it(code=harness.EXIT_DATA_LOSS)
        self.assertRegex(lost.stdout, r"rank 1: the result of \w+ #\d+ of comm \d+ cannot be read: .*; the recording is DAMAGED\n")

    def test_a_recording_that_was_cut_short_is_not_damaged(self):
        shutil.rmtree(self.trace_path())
        self.record("replay_trainer", ["--fault", "crash", "--fault-step", 7, "--fault-rank", 1], n=2)
        run = self.replay(1)
        self.assertEqual(run.code, harness.EXIT_OK, f"\n{run}")
        self.assertNotIn("DAMAGED", run.stdout + run.stderr)


class DamagedChild(harness.DejaTest):
    SCRIPT = """\
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "import random; print(random.random())"], capture_output=True, text=True).stdout)
"""

    def test_a_child(self):
        script = self.dir / "parent.py"
        script.write_text(self.SCRIPT)
        self.checked(self.record_single(sys.executable, script))
        child = next(path.name for path in self.trace_path().glob("child-*"))
        size = (self.trace_path() / child / "events.deja").stat().st_size
        damage(self, child + "/events.deja", 100 / size)
        for words in (["info"], ["replay"], ["pack", "--out", self.dir / "packed.zip"]):
            run = self.checked(self.deja(words[0], self.trace_path(), *words[1:]), harness.EXIT_DATA_LOSS)
            self.assertRegex(run.stderr, r"rank 0, child 0/1\S*: its recording is DAMAGED: \S*events.deja, offset \d+", f"\n{run}")


if __name__ == "__main__":
    harness.main()
