#!/usr/bin/env python3
"""Going back in gdb to images of a program with one thread, and of one whose other threads wait at its steps.

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

POSITIONS = int(os.environ.get("DEJA_GOTO_POSITIONS", "8"))
SEED = int(os.environ.get("DEJA_GOTO_SEED", "7"))
STATE = r'printf "state %lx %.9g\n", trail, weights[0]'
IMAGE = "deja: went back to the image of step"
AGAIN = "deja: started again"


class ImagesTest(harness.DejaTest):
    app = ""
    steps = 30

    def record_run(self, *args):
        """What the recorded ranks told: {(rank, "step" or "operation", number): "trail weight"}."""
        arguments = [*args, "--steps", self.steps]
        plain = self.checked(self.launch(self.app, arguments, n=2))
        run = self.recorded = self.checked(self.record(self.app, arguments, n=2))
        self.assertEqual(len(plain.stdout.splitlines()), len(run.stdout.splitlines()))
        told = re.findall(r"^rank (\d) (\w+) (\d+): (\S+ \S+)$", run.stdout, re.MULTILINE)
        return {(int(rank), what, int(number)): state for rank, what, number, state in told}

    def gdb(self, *commands):
        words = [word for command in commands for word in ("--gdb-command", command)]
        # Whoever starts it may have left a pipe open: that is not the program's.
        ends = os.pipe()
        try:
            run = self.deja("replay", self.trace_path(), "--rank", 1, "--gdb", *words, timeout=600, pass_fds=ends)
        finally:
            for end in ends:
                os.close(end)
        self.assertNotIn("Traceback", run.stderr, f"\n{run}")
        self.assertNotIn("Python Exception", run.stderr, f"\n{run}")
        self.assertNothingIsLeft()
        return run

    def assertNothingIsLeft(self):
        program = os.path.realpath(harness.app(self.app))
        folder = str(self.dir)
        left = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/exe") == program and os.readlink(f"/proc/{pid}/cwd").startswith(folder):
                    left.append(pid)
            except OSError:
                continue
        self.assertEqual(left, [])

    def states(self, run):
        return re.findall(r"^state (\S+ \S+)$", run.stdout, re.MULTILINE)


@unittest.skipIf(shutil.which("gdb") is None, "gdb is not installed")
class Images(ImagesTest):
    app = "replay_alone"

    def record_run(self, *args):
        data = self.dir / "data"
        data.write_bytes(bytes(range(256)) * 4)
        return super().record_run(data, *args)

    def test_random_places_have_the_state_that_was_there(self):
        told = self.record_run()
        chance = random.Random(SEED)
        places = [(chance.choice(["step", "operation"]), chance.randrange(self.steps)) for _ in range(POSITIONS)]
        commands = []
        for what, number in places:
            commands += [f"deja goto step {number}" if what == "step" else f"deja goto seq {number + 1} comm 0",
                         *(["up"] if what == "step" else []), STATE]
        run = self.gdb(*commands)
        self.assertEqual(self.states(run), [told[1, what, n + (what == "operation")] for what, n in places], f"\n{run}")
        backwards = sum(later[1] < earlier[1] for earlier, later in zip(places, places[1:]))
        self.assertGreaterEqual(run.stdout.count(IMAGE), backwards - 1, f"\n{run}")
        print(f"{len(self.states(run))} of {POSITIONS} places", file=sys.stderr)

    def test_goes_back_to_the_image_of_the_step(self):
        told = self.record_run()
        run = self.gdb("deja goto step 25", "deja goto step 24", "up", STATE, "deja goto step 23", "up", STATE, "deja goto step 24",
                       "up", STATE, "deja goto step 23", "up", STATE)
        self.assertEqual(self.states(run), [told[1, "step", n] for n in (24, 23, 24, 23)], f"\n{run}")
        self.assertEqual(re.findall(IMAGE + r" (\d+)$", run.stdout, re.MULTILINE), ["24", "23", "23"], f"\n{run}")
        self.assertNotIn(AGAIN, run.stdout)

    def test_the_end_is_the_same_after_going_back(self):
        self.record_run()
        straight = self.gdb("deja goto end")
        run = self.gdb("deja goto step 20", "deja goto step 7", "deja goto end")

        def end(text):
            return re.findall(r"^deja: (.*exit 0.*|step \d+, .* compared, .*)$", text.stdout, re.MULTILINE)[-2:]
        self.assertEqual(end(run), end(straight), f"\n{run}")
        self.assertIn(IMAGE, run.stdout)
        self.assertIn("exit 0", end(run)[0])
        self.assertIn("0 different", end(run)[1])
        # Printed once up to step 20, and again from step 7 on.
        lines = re.findall(r"^rank 1 step (\d+):", run.stdout, re.MULTILINE)
        self.assertEqual([int(n) for n in lines], [*range(20), *range(7, self.steps)], f"\n{run}")

    def test_back_marks_and_breakpoints(self):
        told = self.record_run()
        run = self.gdb("deja goto step 9", "deja mark nine", "deja goto step 27", "deja back", "up", STATE, "deja goto step 25",
                       "deja goto mark nine", "up", STATE,
                       "break Tell if number == 17", "deja goto step 25", "deja reverse-continue",
                       r'printf "at %s %d\n", what, number', "deja reverse-continue", r'printf "at %s %d\n", what, number',
                       r'printf "state %lx %.9g\n", trail, weight', "continue", r'printf "at %s %d\n", what, number')
        self.assertEqual(self.states(run), [told[1, "step", 9], told[1, "step", 9], told[1, "step", 17]][:1] * 2
                         + [told[1, "operation", 17]], f"\n{run}")
        self.assertEqual(re.findall(r"^at (\w+ \d+)$", run.stdout, re.MULTILINE),
                         ["step 17", "operation 17", "step 17"], f"\n{run}")
        self.assertNotIn(AGAIN, run.stdout)

    def test_the_statement_before(self):
        self.record_run()
        run = self.gdb("deja goto seq 7 comm 0", "deja reverse-next", "deja reverse-next")
        source = (Path(harness.ROOT) / "tests/e2e/apps/replay/alone.cc").read_text().splitlines()
        call = next(i for i, line in enumerate(source) if "ncclAllReduce(gradient" in line)  # the line where CHECK( is
        shown = [int(line) for line in re.findall(r"^(\d+)\t", run.stdout, re.MULTILINE)]
        self.assertIn(shown[0], (call, call + 1), f"\n{run}")
        self.assertLess(shown[2], call, f"\n{run}")
        self.assertGreater(shown[2], call - 6, f"\n{run}")
        self.assertIn(IMAGE, run.stdout)

    def test_a_program_with_two_threads(self):
        told = self.record_run("--thread-at", 10)
        run = self.gdb("deja goto step 20", "deja goto step 18", "up", STATE, "deja goto step 6", "up", STATE, "deja goto end")
        self.assertEqual(self.states(run), [told[1, "step", 18], told[1, "step", 6]], f"\n{run}")
        self.assertEqual(re.findall(IMAGE + r" (\d+)$", run.stdout, re.MULTILINE), ["18", "6"], f"\n{run}")
        self.assertIn("the program ends with exit 0", run.stdout)

    def test_children_of_the_program(self):
        told = self.record_run("--child-at", 12)
        run = self.gdb("deja goto step 20", "deja goto step 11", "deja goto step 14", "up", STATE, "deja goto end")
        self.assertEqual(self.states(run), [told[1, "step", 14]], f"\n{run}")
        self.assertIn("the program ends with exit 0", run.stdout)


@unittest.skipIf(shutil.which("gdb") is None, "gdb is not installed")
class ImagesOfThreads(ImagesTest):
    app = "replay_waiting_threads"
    state = r'printf "state %lx %lx\n", trail, others'

    def test_threads_go_on_after_going_back(self):
        told = self.record_run()
        places = (24, 12, 23, 3, 20)
        visits = [command for n in places for command in (f"deja goto step {n}", "up", self.state)]
        run = self.gdb("deja goto step 25", *visits, "deja goto end")
        self.assertEqual(self.states(run), [told[1, "step", n] for n in places], f"\n{run}")
        self.assertEqual(run.stdout.count(IMAGE), 3, f"\n{run}")
        self.assertNotIn(AGAIN, run.stdout)
        self.assertIn("the program ends with exit 0", run.stdout)
        # Joins, keys of threads, and no call that was interrupted.
        end = re.search(r"^rank 1 ends with .*, 3 destroyed, 0 interrupted$", self.recorded.stdout, re.MULTILINE)[0]
        self.assertIn(end, run.stdout.splitlines(), f"\n{run}")
        self.assertIn("30 digests compared, 0 different", run.stdout)

    def test_an_image_has_the_threads_that_were_there(self):
        self.record_run()
        count = "python print('threads', len(gdb.selected_inferior().threads()), sorted({t.name for t in gdb.selected_inferior().threads()}))"
        run = self.gdb("deja goto step 9", count, "deja goto step 8", count, "deja goto step 9", "deja goto step 8", count)
        seen = re.findall(r"^threads (\d+ .*)$", run.stdout, re.MULTILINE)
        self.assertEqual(len(seen), 3, f"\n{run}")
        self.assertEqual(len(set(seen)), 1, f"\n{run}")
        self.assertRegex(seen[0], r"^7 \['echo', 'replay_waiting_'\]$")

    def test_breakpoints_in_other_threads(self):
        told = self.record_run()
        run = self.gdb("deja goto step 20", "break Tell if number == 17", "deja reverse-continue",
                       r'printf "state %lx %lx\n", trail, others', "delete", "break WorkOn", "continue",
                       "python print('on', gdb.selected_thread().num)", r'printf "own %lx\n", t_own', "delete",
                       "deja goto step 18", "deja goto step 17", "break WorkOn", "continue", r'printf "own %lx\n", t_own')
        self.assertEqual(self.states(run), [told[1, "step", 17]], f"\n{run}")
        self.assertIn(IMAGE, run.stdout)
        self.assertNotIn(AGAIN, run.stdout)
        self.assertGreater(int(re.search(r"^on (\d+)$", run.stdout, re.MULTILINE)[1]), 1, f"\n{run}")
        own = re.findall(r"^own (\w+)$", run.stdout, re.MULTILINE)
        self.assertEqual(len(own), 2, f"\n{run}")
        self.assertNotEqual(own[0], "7")

    def test_a_thread_that_computes(self):
        told = self.record_run("--computes-at", 10)
        run = self.gdb("deja goto step 20", "deja goto step 18", "up", self.state, "deja goto step 6", "up", self.state)
        self.assertEqual(self.states(run), [told[1, "step", 18], told[1, "step", 6]], f"\n{run}")
        self.assertEqual(re.findall(IMAGE + r" (\d+)$", run.stdout, re.MULTILINE), ["10", "6"], f"\n{run}")


if __name__ == "__main__":
    harness.main()
