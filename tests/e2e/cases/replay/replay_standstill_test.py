"""A replay that hangs ends, and says which process waits for which."""
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

WAITS = r"rank 0 \(process \d+\) reads pipe:\[\d+\]; its other end is with itself only"
CHILD = r"a child of rank 0 \(process \d+\) has ended"


class Standstill(harness.DejaTest):
    def setUp(self):
        self.program = harness.app("replay_silence")
        plain = self.checked(self.command([self.program]))
        recorded = self.checked(self.record_single(self.program))
        self.assertSameLines(plain.stdout, recorded.stdout)

    def test_it_ends_as_a_divergence(self):
        self.assertEqual(self.checked(self.replay(0)).stdout.splitlines()[0],
                         "read 1: x; the child's status is 0")
        run = self.checked(self.deja("replay", self.trace_path(), "--rank", 0, "--", self.program, "silent"),
                           harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"\Arank 0: the replay hung and was ended: each of its threads waited for "
                                     rf"another\n  {CHILD}\n  {WAITS}\n\Z")

    def test_with_warn_it_is_reported_and_goes_on(self):
        process = self.start([harness.DEJA, "replay", self.trace_path(), "--rank", "0", "--on-divergence", "warn",
                              "--", self.program, "silent"])
        lines = [process.stderr.readline() for _ in range(3)]
        time.sleep(1)
        self.assertIsNone(process.poll())
        self.assertRegex(b"".join(lines).decode(), rf"\Adeja: replay: it has not got on for 10 s:\ndeja:   {CHILD}\n"
                                         rf"deja:   {WAITS}\n\Z")
        os.killpg(process.pid, signal.SIGKILL)
        self.finish(process)

    def test_one_that_sleeps_and_never_did_ends_too(self):
        run = self.checked(self.deja("replay", self.trace_path(), "--rank", 0, "--", self.program, "asleep",
                                     env={"DEJA_HASTE": 10}), harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"\Arank 0: the replay hung and was ended: nothing that was recorded happened for "
                                     r"\d+ s, and its threads waited; the recorded run was silent for \d+ s at most\n"
                                     r"  rank 0 \(process \d+\) reads pipe:\[\d+\]; .*\n"
                                     r"  .*rank 0.* \(process \d+\) sleeps\n\Z")
        self.assertRegex(run.stderr, r"\Adeja: replay: it has not got on for \d+ s:\n(deja:   .*\n){2}\Z")

    def test_a_sleep_that_was_recorded_is_waited_for(self):
        recorded = self.checked(self.record_single(self.program, "late", trace="late"))
        replayed = self.checked(self.deja("replay", self.trace_path("late"), "--rank", 0, env={"DEJA_HASTE": 10}))
        self.assertEqual(replayed.stdout.splitlines()[0], recorded.stdout.splitlines()[0])
        self.assertEqual(replayed.stderr, "")


if __name__ == "__main__":
    harness.main()
