#!/usr/bin/env python3
"""`deja replay --out`: a replay leaves a trace of what the program really did, and diff and bisect compare it with the
recording."""
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

DATA = Path(harness.app("digits_train")).parent / "data" / "digits.txt"


class ReplayTrace(harness.DejaTest):
    def train(self, *args, code=0, every=10):
        options = ["--checkpoint-every", every] if every else []
        return self.checked(self.record("digits_train", ["--batch=16", "--snapshot-every=1", "--steps=40", *args],
                                        options=options), code)

    def replayed(self, *args, out="again.deja", code=0, program=()):
        run = self.deja("replay", self.trace_path(), "--out", self.trace_path(out), *args, *(["--", *program] if program else []))
        return self.checked(run, code)

    def compared(self, *args, command="diff", out="again.deja", code=0):
        return self.checked(self.deja(command, self.trace_path(), self.trace_path(out), *args), code)

    def test_an_unchanged_replay_differs_in_nothing(self):
        self.train()
        self.assertIn("deja: next: deja diff ", self.replayed("--all").stderr)
        text = self.compared().stdout
        for rank in range(4):
            self.assertRegex(text, rf"rank {rank}: B is a replay of A\nrank {rank}: equal: 124 operations, \d+ snapshots, \d+ tensor digests\n")
        self.assertIn("equal", self.compared(command="bisect").stdout)
        self.assertVerifies("again.deja")
        ranks = self.info_json("again.deja")["ranks"]
        self.assertEqual([rank["steps"] for rank in ranks], [40] * 4)
        self.assertEqual(self.info_json("again.deja")["level"], "digest")

    def test_from_a_checkpoint_what_both_have_is_compared(self):
        self.train()
        self.replayed("--rank", 1, "--from-step", 25)
        text = self.compared().stdout
        self.assertIn("rank 1: B is a replay of A, from the checkpoint of step 20: ", text)
        self.assertIn("rank 1: equal: 64 operations", text)
        self.replayed("--rank", 1, "--until-step", 13, out="part.deja")
        text = self.compared(out="part.deja").stdout
        self.assertIn("from the checkpoint of step 10", text)
        self.assertIn("it ended where it was asked to", text)
        self.assertIn(f"\nreplay   of {self.trace_path()}, from the checkpoint of step 10, to where it was asked to end\n",
                      self.checked(self.deja("info", self.trace_path("part.deja"))).stdout)
        self.assertNotIn("replay_of", self.info_json())
        self.assertIn("rank 1: equal: 10 operations", text)
        json = self.compared("--json", out="part.deja").json()
        self.assertEqual(json["ranks"][0]["replay_b"], self.info_json("part.deja")["replay_of"])
        self.assertEqual(json["ranks"][0]["replay_b"], {"trace": str(self.trace_path()), "from_step": 10, "ended_as_asked": True})

    def test_a_changed_input_file_is_found_in_the_first_tensor_that_it_changes(self):
        data = self.dir / "digits.txt"
        shutil.copy(DATA, data)
        self.train(f"--data={data}")
        lines = data.read_text().splitlines(keepends=True)
        lines[1:] = [re.sub(r"\b0\b", "7", line, count=3) for line in lines[1:]]
        data.write_text("".join(lines))
        stopped = self.replayed("--rank", 2, out="stopped.deja", code=harness.EXIT_DIVERGED)
        self.assertIn(str(data), stopped.stdout)
        self.assertIn("B  does not reach it", self.compared(out="stopped.deja", code=harness.EXIT_DIVERGED).stdout)
        self.replayed("--rank", 2, "--on-divergence", "warn", code=harness.EXIT_DIVERGED)
        found = self.compared(command="bisect", code=harness.EXIT_DIVERGED).stdout
        self.assertRegex(found, r"rank 2: the first difference is (snapshot \S.* \(#\d+\): it|\S+ #\d+ of comm 0: its input) differs\n")
        self.assertRegex(found, r"\nA  from the (start|checkpoint)[^\n]*:\n   deja replay \S+/run.deja --rank 2 --gdb ")
        self.assertNotIn("\nB  ", found)

    def test_a_late_difference_is_named_with_its_step_tensor_and_checkpoint(self):
        program = harness.app("replay_trainer")
        self.checked(self.record("replay_trainer"))
        self.replayed("--rank", 2, "--on-divergence", "warn", code=harness.EXIT_DIVERGED,
                      program=[program, "--flip-step", "7", "--flip-index", "81"])
        found = self.compared(command="bisect", code=harness.EXIT_DIVERGED).stdout
        self.assertIn("--flip-step 7 --flip-index 81' in B\n", found)
        self.assertIn("rank 2: the first difference is snapshot gradient (#8): it differs\n", found)
        self.assertRegex(found, r"  A  step 7, .*\n  B  step 7, .*\n  first at element 81 of 1000: \S+ in A, \S+ in B, 1 ULP apart; 1 differs\n")
        self.assertRegex(found, r"A  from the start .*\n   deja replay \S+ --rank 2 --gdb --until-step 7\n")

    def test_an_input_of_a_collective_differs(self):
        program = harness.app("replay_trainer")
        self.checked(self.record("replay_trainer", ["--no-snapshot"]))
        self.replayed("--rank", 2, code=harness.EXIT_DIVERGED, program=[program, "--no-snapshot", "--flip-step", "7", "--flip-index", "81"])
        found = self.compared(command="bisect", code=harness.EXIT_DIVERGED).stdout
        self.assertIn("rank 2: the first difference is AllReduce #30 of comm 0: its input differs\n", found)
        self.assertIn("--until-seq 30 --comm 0\n", found)
        notes = [event for event in self.show_json("--rank", "2", "--kind", "note", trace="again.deja")]
        self.assertTrue(any("divergence at step 7" in str(note) for note in notes), notes)

    def test_states_of_generators_are_named_before_their_numbers(self):
        self.train("--seed=5")
        self.replayed("--rank", 0, "--on-divergence", "warn", code=harness.EXIT_DIVERGED,
                      program=[harness.app("digits_train"), "--batch=16", "--snapshot-every=1", "--steps=40", "--seed=6"])
        found = self.compared(code=harness.EXIT_DIVERGED).stdout
        self.assertRegex(found, r"rank 0: the first difference is (snapshot \S* ?rng \(#1\): it|Broadcast #1 of comm 0: its input) differs\n")

    def test_calls_that_are_too_many_or_missing(self):
        program = harness.app("replay_trainer")
        self.checked(self.record("replay_trainer", ["--no-snapshot"]))
        for steps, side in (25, "A"), (15, "B"):
            out = f"steps-{steps}.deja"
            self.replayed("--rank", 2, "--on-divergence", "warn", out=out, code=harness.EXIT_DIVERGED,
                          program=[program, "--no-snapshot", "--steps", str(steps)])
            found = self.compared(out=out, command="bisect", code=harness.EXIT_DIVERGED).stdout
            self.assertRegex(found, r"the first difference is \S+ #\d+ of comm 0: only one of them has it\n")
            self.assertIn(f"  {side}  does not reach it\n", found)

    def test_a_run_that_crashed_is_replayed_into_a_whole_trace(self):
        self.record("replay_trainer", ["--fault", "crash"])
        self.replayed("--rank", 2)
        self.assertIn("equal", self.compared().stdout)
        self.assertVerifies("again.deja")
        self.assertIn("SIG", self.checked(self.deja("info", self.trace_path("again.deja"))).stdout)

    def test_an_existing_trace_is_not_replaced_and_gdb_leaves_none(self):
        self.checked(self.record("replay_trainer"))
        refused = self.deja("replay", self.trace_path(), "--rank", 0, "--out", self.trace_path())
        self.assertIn("it exists already; give another", self.checked(refused, harness.EXIT_FAILURE).stderr)
        refused = self.deja("replay", self.trace_path(), "--rank", 0, "--gdb", "--out", self.trace_path("again.deja"))
        self.assertIn("--out: in gdb a program goes back and forth", self.checked(refused, harness.EXIT_USAGE).stderr)
        self.assertFalse(Path(self.trace_path("again.deja")).exists())
        packed = self.trace_path("again.deja.zip")
        self.replayed("--rank", 0)
        self.checked(self.deja("pack", self.trace_path("again.deja"), "--out", packed))
        self.assertIn("B is a replay of A", self.checked(self.deja("diff", self.trace_path(), packed)).stdout)


class OnADevice(DeviceJobs):
    def test_data_that_streams_read_is_compared(self):
        self.checked(self.record("cuda_steps", ["--steps=3"], n=2))
        again = self.trace_path("again.deja")
        self.checked(self.deja("replay", self.trace_path(), "--rank", 1, "--out", again))
        text = self.checked(self.deja("diff", self.trace_path(), again)).stdout
        self.assertRegex(text, r"rank 1: equal: 18 operations, 0 snapshots, 27 tensor digests\n")
        other = self.trace_path("other.deja")
        self.checked(self.deja("replay", self.trace_path(), "--rank", 1, "--out", other, "--", harness.app("cuda_steps"), "--steps=3",
                               "--fault=2"), harness.EXIT_DIVERGED)
        text = self.checked(self.deja("diff", self.trace_path(), other), harness.EXIT_DIVERGED).stdout
        self.assertRegex(text, r"rank 1: the first difference is \S+ #\d+ of comm 0: its input differs\n")


if __name__ == "__main__":
    harness.main()
