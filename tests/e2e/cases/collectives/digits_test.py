#!/usr/bin/env python3
"""The example program without Deja: it learns in every mode, repeats with a seed, and fails as its --fault says."""
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

MODES = ("ddp", "sharded", "pipeline", "hybrid")
STAGES = {"ddp": 1, "sharded": 1, "pipeline": 2, "hybrid": 2}
# A fault comes in nine runs of ten; this many runs without it are a bug (one time in 100,000).
ATTEMPTS = 5
HUNG_SECONDS = 20


def hashes(run):
    """The ranks' final weights, by rank."""
    return dict(re.findall(r"^rank (\d+) weights ([0-9a-f]{16})$", run.stdout, re.MULTILINE))


def steps(run):
    return [int(step) for step in re.findall(r"^step (\d+) ", run.stdout, re.MULTILINE)]


class Digits(harness.DejaTest):
    def train(self, *args, n=4, seconds=harness.DEFAULT_TIMEOUT, env=None):
        """The job's end, or None when it has not come after `seconds`."""
        process = self.start(self.launch_argv("digits_train", args, n=n, options=("--grace", "30")), env=env)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            return None
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        return harness.Run(process.args, code, out.decode(), err.decode())

    def failing(self, fault, mode="ddp", seconds=harness.DEFAULT_TIMEOUT):
        """The first of several runs that does not end well; a run that does is as good as one without the fault."""
        for _ in range(ATTEMPTS):
            run = self.train(f"--mode={mode}", f"--fault={fault}", seconds=seconds)
            if run is None or run.code != 0:
                return run
            self.assertEqual(steps(run)[-1], 600, f"\n{run}")
        return self.fail(f"--fault={fault} --mode={mode} did not show in {ATTEMPTS} runs")


class Learns(Digits):
    def check_mode(self, mode):
        run = self.checked(self.train(f"--mode={mode}"))
        self.assertIn(f"mode {mode}, 4 ranks, 600 steps", run.stdout)
        accuracy = float(re.search(r"^accuracy ([0-9.]+)%", run.stdout, re.MULTILINE).group(1))
        self.assertGreater(accuracy, 95, f"\n{run}")
        weights = hashes(run)
        self.assertEqual(sorted(weights), ["0", "1", "2", "3"], f"\n{run}")
        self.assertEqual(len(set(weights.values())), STAGES[mode], f"\n{run}")
        self.assertEqual(run.stderr, "")

    def test_ddp(self):
        self.check_mode("ddp")

    def test_sharded(self):
        self.check_mode("sharded")

    def test_pipeline(self):
        self.check_mode("pipeline")

    def test_hybrid(self):
        self.check_mode("hybrid")


class Repeats(Digits):
    def test_same_seed_same_weights(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                args = (f"--mode={mode}", "--steps=60", "--seed=20")
                first, second = self.checked(self.train(*args)), self.checked(self.train(*args))
                self.assertSameLines(first.stdout, second.stdout)
                self.assertEqual(len(hashes(first)), 4)
                other = self.checked(self.train(f"--mode={mode}", "--steps=60", "--seed=21"))
                self.assertNotEqual(hashes(first), hashes(other))

    def test_unseeded_runs_differ(self):
        runs = [hashes(self.checked(self.train("--steps=20")))["0"] for _ in range(3)]
        self.assertEqual(len(set(runs)), 3)

    def test_other_numbers_of_ranks(self):
        for n in (1, 2, 3):
            with self.subTest(n=n):
                weights = hashes(self.checked(self.train("--steps=20", n=n)))
                self.assertEqual(len(weights), n)
                self.assertEqual(len(set(weights.values())), 1)

    def test_id_by_file(self):
        program = ["env", "-u", "NCCL_COMM_ID", harness.app("digits_train"), "--steps=5", "--id-file=id"]
        run = self.checked(self.command([harness.DEJA, "launch", "-n", 2, "--", *program]))
        self.assertEqual(len(hashes(run)), 2)


class Faults(Digits):
    def test_crash(self):
        run = self.failing("crash")
        self.assertEqual(run.code, 128 + signal.SIGSEGV, f"\n{run}")
        self.assertEqual(hashes(run), {})
        self.assertRegex(run.stderr, r"rank \d: nccl\w+ of .* on communicator world failed: ")

    def test_crashes_come_at_different_places(self):
        where = set()
        for _ in range(ATTEMPTS):
            run = self.train("--fault=crash", "--log-every=1", "--steps=1500")
            where.add((steps(run) or [None])[-1])  # None: before the first step was printed
            if len(where) > 1:
                return
        self.fail(f"always at step {where}")

    def test_nan(self):
        run = self.failing("nan")
        self.assertEqual(run.code, 1, f"\n{run}")
        self.assertIn("the loss is not a number at step", run.stderr)

    def test_desync(self):
        self.check_mismatch("desync")

    def test_shape(self):
        self.check_mismatch("shape")

    def check_mismatch(self, fault):
        """Calls that do not fit: a hang, an error or wrong numbers, as the library has it; never a good end."""
        run = self.failing(fault, seconds=HUNG_SECONDS)
        if run is not None:
            self.assertEqual(run.code, 1, f"\n{run}")
            self.assertRegex(run.stderr, r"rank \d: nccl\w+ of .* failed: |weights are not those|not a number")

    def test_a_strict_library_compares_calls(self):
        for _ in range(ATTEMPTS):
            run = self.train("--fault=shape", env={"DEJA_LOOPBACK_STRICT": "1"})
            self.assertIsNotNone(run, "the ranks hung")
            if run.code != 0:
                break
        self.assertRegex(run.stderr, r"calls another collective, or the same one with other arguments")

    def test_hang(self):
        self.assertIsNone(self.failing("hang", seconds=HUNG_SECONDS))

    def test_corrupt(self):
        run = self.failing("corrupt")
        self.assertEqual(run.code, 1, f"\n{run}")
        self.assertRegex(run.stderr, r"rank [1-3]'s weights are not those of rank 0")
        self.assertGreater(len(set(hashes(run).values())), 1)


class Usage(Digits):
    def test_mistakes_are_named(self):
        for args, message in ((["--mode=x"], "--mode cannot be 'x'"), (["--stepz=1"], "no option --stepz"),
                              (["--steps=0"], "--steps cannot be '0'"), (["x"], "what is 'x'?"),
                              (["--mode=pipeline", "--batch=30"], "multiple of --microbatches")):
            with self.subTest(args=args):
                run = self.checked(self.command([harness.app("digits_train"), *args]), code=harness.EXIT_USAGE)
                self.assertIn(message, run.stderr)

    def test_missing_data(self):
        run = self.command([harness.app("digits_train"), "--data=/nowhere/digits.txt"])
        self.assertEqual(run.code, 1)
        self.assertIn("/nowhere/digits.txt", run.stderr)

    def test_odd_pipeline(self):
        run = self.train("--mode=pipeline", n=3)
        self.assertEqual(run.code, 2)
        self.assertIn("even number of ranks", run.stderr)


if __name__ == "__main__":
    harness.main()
