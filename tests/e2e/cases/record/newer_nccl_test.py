"""An NCCL that is newer than Deja: the recording goes on and names the calls; a replay ends at the first one."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

CALL = "ncclScaledReduceLater, a call of a newer NCCL than Deja knows (2.32.3); a replay ends at it"


class NewerNccl(harness.DejaTest):
    def recorded(self, program, args):
        plain = self.checked(self.launch(program, args, n=2))
        run = self.checked(self.record(program, args, n=2))
        self.assertSameBehaviour(plain, run)
        return run

    def check_call(self, program, args=()):
        """Recorded as without Deja, named everywhere; each rank's replay ends at the call."""
        run = self.recorded(program, args)
        self.assertIn(f"not recorded: ranks 0, 1: {CALL}\n", run.stderr)
        self.assertNotIn("if the program calls it", run.stderr)
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertIn(f"not recorded: {CALL}\n", info)
        self.assertIn("ncclGetEditionLater, a call of a newer NCCL", info)
        self.assertNotIn("if the program calls it", info)
        events = self.checked(self.deja("show", self.trace_path(), "--rank", "1")).stdout
        self.assertIn(f"not recorded: {CALL}", events)
        for rank in (0, 1):
            replay = self.replay(rank)
            self.assertEqual(replay.code, harness.EXIT_FAILURE, replay)
            self.assertIn("ncclScaledReduceLater, a call of a newer NCCL than Deja knows", replay.stdout + replay.stderr)
            self.assertIn(f"rank {rank}: known", replay.stdout)
            self.assertNotIn(f"rank {rank}: new", replay.stdout)

    def test_linked_and_bound_at_the_first_call(self):
        self.check_call("newer_lazy")

    def test_linked_and_bound_at_once(self):
        self.check_call("newer_now")

    def test_looked_up(self):
        self.check_call("newer_lazy", ["--looked-up"])

    def test_through_a_pointer(self):
        self.check_call("newer_now", ["--by-pointer"])

    def test_what_is_never_called_is_no_obstacle(self):
        run = self.recorded("newer_now", ["--never"])
        self.assertIn("ncclScaledReduceLater, if the program calls it", self.deja("info", self.trace_path()).stdout)
        for rank in (0, 1):
            replay = self.checked(self.replay(rank))
            self.assertIn("the same as recorded", replay.stdout)
            self.assertEqual([line for line in replay.stdout.splitlines() if line.startswith(f"rank {rank}: known")],
                             [line for line in run.stdout.splitlines() if line.startswith(f"rank {rank}: known")])

    def test_a_call_with_a_tag_for_profilers_shows_it(self):
        self.checked(self.record("nccl_collectives", n=2))
        tags = {event["call"]: event["profiler_tag"] for event in self.show_json("--rank", "1", "--kind", "enter")
                if "profiler_tag" in event}
        self.assertEqual(set(tags.values()), {7})
        self.assertIn("AllReduceConfig", tags)
        shown = self.checked(self.deja("show", self.trace_path(), "--rank", "1", "--kind", "enter")).stdout
        self.assertRegex(shown, r"AllReduceConfig .* tag=7")

    def test_all_ranks_together(self):
        self.recorded("newer_now", [])
        replay = self.deja("replay", self.trace_path(), "--all")
        self.assertEqual(replay.code, harness.EXIT_FAILURE, replay)
        self.assertIn("ncclScaledReduceLater, a call of a newer NCCL", replay.stdout + replay.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
