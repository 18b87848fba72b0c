#!/usr/bin/env python3
"""Replays that end, or stop in gdb, at a place of the run, and go backwards from there.

DEJA_GOTO_POSITIONS=50: random places to go to (8 if it is not set); DEJA_GOTO_SEED: which ones."""
import os
import random
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APP = "replay_checkpoints"
POSITIONS = int(os.environ.get("DEJA_GOTO_POSITIONS", "8"))
SEED = int(os.environ.get("DEJA_GOTO_SEED", "7"))
STATE = r'printf "state %lx %.9g\n", trail, weights[0]'


class Travel(harness.DejaTest):
    steps = 30

    def record_run(self, *args, every=10):
        """What the recorded ranks told: {(rank, "step" or "operation", number): "trail weight"}."""
        options = ["--checkpoint-every", every] if every else []
        run = self.checked(self.record(APP, ["--tell", "--steps", self.steps, *args], n=2, options=options))
        told = re.findall(r"^rank (\d) (\w+) (\d+): (\S+ \S+)$", run.stdout, re.MULTILINE)
        return {(int(rank), what, int(number)): state for rank, what, number, state in told}

    def gdb(self, *commands, rank=1, options=()):
        words = [word for command in commands for word in ("--gdb-command", command)]
        run = self.deja("replay", self.trace_path(), "--rank", rank, "--gdb", *options, *words, timeout=600)
        self.assertNotIn("Traceback", run.stderr, f"\n{run}")
        self.assertNotIn("Python Exception", run.stderr, f"\n{run}")
        return run


class Until(Travel):
    def until(self, *options, code=0):
        return self.checked(self.replay(1, options=options), code)

    def assertEndsAt(self, run, where, start=None):
        self.assertIn(f"rank 1: ended where it was asked to: {where}; ", run.stdout, f"\n{run}")
        if start is not None:
            self.assertIn(f"from the checkpoint at step {start}\n", run.stderr)
        else:
            self.assertNotIn("checkpoint", run.stderr)

    def test_a_step(self):
        told = self.record_run()
        run = self.until("--until-step", 25)
        self.assertEndsAt(run, "step 25 begins", 20)
        self.assertIn(f"rank 1 step 24: {told[1, 'step', 24]}", run.stdout)
        self.assertNotIn("rank 1 step 25:", run.stdout)
        self.assertNotIn("rank 1 step 19:", run.stdout)
        self.assertEndsAt(self.until("--until-step", 20), "step 20 begins", 20)
        self.assertEndsAt(self.until("--until-step", 9), "step 9 begins")
        self.assertEndsAt(self.until("--until-step", 25, "--from-step", 15), "step 25 begins", 10)

    def test_an_operation(self):
        told = self.record_run()
        run = self.until("--until-seq", 21)
        self.assertEndsAt(run, "AllReduce #21 of comm 0", 20)
        self.assertIn(f"rank 1 operation 21: {told[1, 'operation', 21]}", run.stdout)
        self.assertNotIn("rank 1 step 21:", run.stdout)
        self.assertEndsAt(self.until("--until-seq", 20, "--comm", 0), "AllReduce #20 of comm 0", 10)
        self.assertEndsAt(self.until("--until-seq", 3), "AllReduce #3 of comm 0")

    def test_side_by_side_and_as_json(self):
        self.record_run()
        run = self.checked(self.deja("replay", self.trace_path(), "--all", "--until-step", 12, "--json"))
        self.assertEqual([(rank["until"], rank["verdict"]) for rank in run.json()["ranks"]], [("step 12 begins", "same")] * 2)

    def test_without_checkpoints(self):
        self.record_run(every=0)
        self.assertEndsAt(self.until("--until-step", 25), "step 25 begins")

    def test_places_that_are_not_there(self):
        self.record_run()
        self.assertIn("replaying: rank 1: it did not reach step 30",
                      self.until("--until-step", 30, code=harness.EXIT_FAILURE).stderr)
        self.assertIn("it did not reach operation 31",
                      self.until("--until-seq", 31, code=harness.EXIT_FAILURE).stderr)
        self.assertIn("it did not reach operation 5 of communicator 3",
                      self.until("--until-seq", 5, "--comm", 3, code=harness.EXIT_FAILURE).stderr)


@unittest.skipIf(shutil.which("gdb") is None, "gdb is not installed")
class Gdb(Travel):
    def test_goes_to_random_places_with_the_state_that_was_there(self):
        told = self.record_run()
        chance = random.Random(SEED)
        places = [(chance.choice(["step", "operation"]), chance.randrange(self.steps)) for _ in range(POSITIONS)]
        commands = []
        for what, number in places:
            commands += [f"deja goto step {number}" if what == "step" else f"deja goto seq {number + 1} comm 0",
                         *(["up"] if what == "step" else []), STATE]
        run = self.gdb(*commands)
        stops = re.findall(r"^deja: (step \d+ begins|AllReduce #\d+ of comm 0)$", run.stdout, re.MULTILINE)
        states = re.findall(r"^state (\S+ \S+)$", run.stdout, re.MULTILINE)
        self.assertEqual(stops, [f"step {n} begins" if what == "step" else f"AllReduce #{n + 1} of comm 0" for what, n in places],
                         f"\n{run}")
        right = [told[1, what, n + (what == "operation")] for what, n in places]
        self.assertEqual(states, right, f"\n{run}")
        print(f"{len(states)} of {POSITIONS} places", file=sys.stderr)

    def test_until_stops_with_the_program_alive(self):
        told = self.record_run()
        run = self.gdb("deja where", "up", STATE, options=["--until-step", 25])
        self.assertIn("deja: started again from the checkpoint of step 20", run.stdout)
        self.assertIn("rank 1, step 25, ", run.stdout)
        self.assertIn(f"state {told[1, 'step', 25]}", run.stdout)

    def test_earlier_output_is_not_printed_again(self):
        self.record_run()
        run = self.gdb("deja goto step 3", "deja goto step 2", "deja goto end")
        lines = re.findall(r"^rank 1 step (\d+):", run.stdout, re.MULTILINE)
        self.assertEqual([int(n) for n in lines], [*range(3), *range(2, 30)], f"\n{run}")

    def test_a_program_with_several_threads_goes_back_to_images(self):
        told = self.record_run()
        run = self.gdb("deja goto step 15", "deja goto step 13", "up", STATE, "deja goto step 12", "up", STATE)
        self.assertEqual(re.findall(r"^state (\S+ \S+)$", run.stdout, re.MULTILINE), [told[1, "step", 13], told[1, "step", 12]])
        self.assertEqual(run.stdout.count("deja: went back to the image of step 1"), 2, f"\n{run}")
        self.assertEqual(run.stdout.count("deja: started again from the checkpoint of step 10"), 1, f"\n{run}")

    def test_a_program_without_images_is_started_again_with_one_message(self):
        told = self.record_run()
        run = self.gdb("deja goto step 15", "deja goto step 13", "up", STATE, "deja goto step 12", "up", STATE,
                       options=["--allow-writes"])
        self.assertEqual(re.findall(r"^state (\S+ \S+)$", run.stdout, re.MULTILINE), [told[1, "step", 13], told[1, "step", 12]])
        self.assertEqual(run.stdout.count("deja: no images of the program are kept: it writes to the files themselves"), 1, f"\n{run}")
        self.assertEqual(run.stdout.count("deja: started again from the checkpoint of step 10"), 3, f"\n{run}")

    def test_a_damaged_checkpoint_is_named_once_and_the_one_before_is_used(self):
        told = self.record_run()
        self.damage_checkpoint(20, rank=1)
        run = self.gdb("deja goto step 25", "up", STATE, "deja goto step 24", "up", STATE, "deja marks", "deja goto end", "deja goto seq 22 comm 0",
                       STATE, options=["--allow-writes"])
        self.assertEqual(re.findall(r"^state (\S+ \S+)$", run.stdout, re.MULTILINE),
                         [told[1, "step", 25], told[1, "step", 24], told[1, "operation", 22]], f"\n{run}")
        said = "deja: the checkpoint at step 20 is damaged and is not used: the bytes of 'weights' on rank 1 cannot be read: "
        self.assertEqual(run.stdout.count(said), 1, f"\n{run}")
        self.assertEqual(run.stdout.count("deja: started again from the checkpoint of step 10"), 3, f"\n{run}")
        self.assertNotIn("step 20: checkpoint", run.stdout)
        self.assertIn("step 10: checkpoint", run.stdout)

    def test_a_damaged_checkpoint_is_named_by_the_command_alone_where_it_finds_it(self):
        told = self.record_run()
        self.damage_checkpoint(20, rank=1)
        run = self.gdb("up", STATE, options=["--until-step", 25])
        self.assertIn(f"state {told[1, 'step', 25]}", run.stdout)
        self.assertEqual((run.stdout + run.stderr).count("the checkpoint at step 20 is damaged and is not used: "), 1, f"\n{run}")

    def test_breakpoints_are_gone_back_to_past_a_damaged_checkpoint(self):
        told = self.record_run()
        for step in (10, 20):
            self.damage_checkpoint(step, rank=1)
        run = self.gdb("deja goto step 25", "break Tell if number == 8", "deja reverse-continue", "up", STATE)
        self.assertEqual(run.stdout.count(" is damaged and is not used: "), 2, f"\n{run}")
        self.assertIn(f"state {told[1, 'step', 8]}", run.stdout, f"\n{run}")

    def test_gdb_says_nothing_between_what_the_program_prints(self):
        """gdb would write "[New Thread …]" in several pieces, and a line of the program's between two of them."""
        self.record_run()
        run = self.gdb("deja goto step 3", "deja until step 5", "deja next", "deja goto end", "show print thread-events")
        self.assertNotIn("[New ", run.stdout, f"\n{run}")
        self.assertNotIn(" exited]", run.stdout, f"\n{run}")
        self.assertIn("Printing of thread events is on", run.stdout)

    def test_back_and_marks(self):
        told = self.record_run()
        run = self.gdb("deja goto step 13", "deja mark before it", "deja goto step 27", "deja goto seq 5", "deja back",
                       "up", STATE, "deja goto mark before it", "up", STATE, "deja marks")
        self.assertEqual(re.findall(r"^state (\S+ \S+)$", run.stdout, re.MULTILINE), [told[1, "step", 27], told[1, "step", 13]],
                         f"\n{run}")
        self.assertIn("mark before it: step 13, step 13 begins", run.stdout)
        self.assertRegex(run.stdout, r"(?m)^step 10: checkpoint, \d+ bytes\n^step 20: checkpoint")

    def test_breakpoints_are_kept_and_gone_back_to(self):
        told = self.record_run()
        run = self.gdb("break Tell if number == 12", "break Tell if number == 17", "deja goto step 25", "deja reverse-continue",
                       r'printf "at %s %d\n", what, number', "deja reverse-continue", r'printf "at %s %d\n", what, number',
                       "deja reverse-continue", r'printf "at %s %d\n", what, number', r'printf "state %lx %.9g\n", trail, weight',
                       "continue", r'printf "at %s %d\n", what, number', "info breakpoints")
        # Functions of Deja's have the same name; the program's is the one that stops.
        self.assertEqual(len(re.findall(r"^1\.\d+ +y ", run.stdout, re.MULTILINE)), 1, f"\n{run}")
        self.assertRegex(run.stdout, r"(?m)^1\.\d+ +n ")
        self.assertEqual(re.findall(r"^at (\w+ \d+)$", run.stdout, re.MULTILINE),
                         ["step 17", "operation 17", "step 12", "operation 17"], f"\n{run}")
        self.assertIn(f"state {told[1, 'step', 12]}", run.stdout)

    def test_the_statement_before(self):
        self.record_run()
        run = self.gdb("deja goto seq 7 comm 0", "deja reverse-next", "deja reverse-next")
        source = (Path(harness.ROOT) / "tests/e2e/apps/replay/checkpoints.cc").read_text().splitlines()
        call = next(i for i, line in enumerate(source, 1) if "CHECK(ncclAllReduce" in line)
        shown = [int(line) for line in re.findall(r"^(\d+)\t", run.stdout, re.MULTILINE)]
        self.assertEqual(shown[0], call, f"\n{run}")
        self.assertEqual(shown[1], call, f"\n{run}")
        self.assertLess(shown[2], call, f"\n{run}")
        self.assertGreater(shown[2], call - 6, f"\n{run}")

    def line_of(self, text, file="tests/e2e/apps/replay/checkpoints.cc"):
        source = (Path(harness.ROOT) / file).read_text().splitlines()
        return next(i for i, line in enumerate(source, 1) if text in line)

    def test_the_statement_that_changed_it(self):
        """A variable that another thread has written, an element of a tensor, and one that no step has changed."""
        self.record_run()
        run = self.gdb("deja goto step 25", "up", "deja when-changed trail",
                       "deja goto step 25", "up", "deja when-changed weights._M_impl._M_start[7]", "print i",
                       "deja goto step 3", "up", "deja when-changed flags.steps", "deja when-changed", "deja when-changed 1 + 1",
                       "deja when-changed nothing")
        self.assertIn('deja: trail changed last between "AllReduce #24 of comm 0" and "AllReduce #25 of comm 0"\n', run.stdout, f"\n{run}")
        self.assertRegex(run.stdout, r"(?m)^deja: weights.* changed last between \"AllReduce #25 of comm 0\" and here$")
        shown = [int(line) for line in re.findall(r"^(\d+)\t", run.stdout, re.MULTILINE)]
        step = self.line_of("step = static_cast<int>(deja_step")
        inlined = self.line_of("return deja_impl_step ?", "include/deja.h")
        changed = [line for line in shown if line not in (step, inlined)]
        self.assertEqual(changed[0], self.line_of("trail ^ std::random_device"), f"\n{run}")
        self.assertIn(changed[1] - self.line_of("weights[i] -= "), (0, -1), f"\n{run}")  # the loop's own line, behind it
        self.assertIn("flags.steps has not changed", run.stderr)
        self.assertIn("usage: deja when-changed", run.stderr)
        self.assertIn("1 + 1 is no variable", run.stderr)
        self.assertRegex(run.stderr, r'No symbol "nothing" in current context\.?; it is no tensor .* \(it has .*weights')

    def test_a_registered_tensor_and_gdbs_own_commands(self):
        """No frame has `weights`: the program has registered it. rn, rsi and rc are gdb's own names."""
        self.record_run()
        saved = self.dir / "weights.npy"
        run = self.gdb("deja goto step 12", "bt", "bt -no-filters 1", f"deja tensor weights --save {saved}",
                       "break Tell if number == 7", "deja when-changed weights", "rn", "print $pc", "rsi", "stepi", "print $pc", "rc",
                       "print number", "deja frames on", "deja goto step 12", "bt 1",
                       "up", "deja when-changed nranks")
        self.assertRegex(run.stdout, r'(?m)^deja: weights changed last between "AllReduce #\d+ of comm 0" and here$', f"\n{run}")
        self.assertEqual(len(set(re.findall(r"^\$\d = (.*main.*)$", run.stdout, re.MULTILINE))), 1, f"\n{run}")
        self.assertIn("$3 = 7\n", run.stdout)
        self.assertEqual(len(re.findall(r"^#0 .*deja_replay_stop", run.stdout, re.MULTILINE)), 2, f"\n{run}")
        raw = saved.read_bytes()
        self.assertEqual(raw[:8] + raw[10:16], b"\x93NUMPY\x01\x00{'desc")
        begin = 10 + int.from_bytes(raw[8:10], "little")
        self.assertEqual((begin % 64, (len(raw) - begin) % 4), (0, 0), "the elements are aligned")
        self.assertIn("nranks is optimised out here: no memory holds it", run.stderr)

    def test_the_statement_that_changed_what_deja_tensor_showed(self):
        self.checked(self.record("replay_trainer"))
        run = self.gdb("deja goto step 5", "deja when-changed gradient", rank=2)
        self.assertRegex(run.stdout, r'(?m)^deja: gradient changed last between "AllReduce #\d+ of comm \d" and "AllReduce #\d+ of comm \d"$', f"\n{run}")
        source = (Path(harness.ROOT) / "tests/e2e/apps/replay/trainer.cc").read_text().splitlines()
        shown = re.findall(r"^(\d+)\t", run.stdout, re.MULTILINE)
        self.assertIn("for (float& g : gradient)", source[int(shown[-1]) - 1], f"\n{run}")

    def test_mistakes(self):
        self.record_run()
        run = self.gdb("deja goto", "deja goto step x", "deja goto mark nowhere", "deja reverse-continue", "deja goto step 99",
                       "deja back", "help deja goto")
        for words in ("usage: deja goto", "give a number", "there is no mark 'nowhere'", "is not running",
                      "there is no step 99: the recording ends in step"):
            self.assertIn(words, run.stderr, f"\n{run}")
        self.assertIn("is started again", run.stdout)


if __name__ == "__main__":
    harness.main()
