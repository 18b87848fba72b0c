#!/usr/bin/env python3
"""Every rank of every mode of the example, replayed alone: the same end, and the same weights bit for bit.

DEJA_REPLAYS=20 replays each rank so often, instead of the numbers below that keep the test short;
DEJA_FAULT_MODES=all records every fault in every mode, instead of in ddp alone.
"""
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import check_log  # noqa: E402
import harness  # noqa: E402

MODES = ("ddp", "sharded", "pipeline", "hybrid")
RANKS = range(4)
AT_ONCE = 2  # replays that run side by side
ATTEMPTS = 5  # a fault comes in nine runs of ten
REPLAYS = int(os.environ.get("DEJA_REPLAYS", "0"))
FAULT_MODES = MODES if os.environ.get("DEJA_FAULT_MODES") == "all" else ("ddp",)


def weights(run):
    """The final weights that ranks printed, by rank."""
    return {int(rank): text for rank, text in re.findall(r"^rank (\d+) weights ([0-9a-f]{16})$", run.stdout, re.MULTILINE)}


class DigitsReplay(harness.DejaTest):
    def record_digits(self, *args, seconds=None):
        """Records until the end, or for `seconds`: then the job is terminated as a user would do it."""
        process = self.start(self.record_argv("digits_train", args))
        try:
            out, err = process.communicate(timeout=seconds or harness.DEFAULT_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        check_log.look_at(self, harness.DEJA, process.args, process.folder)
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        return harness.Run(process.args, code, out.decode(), err.decode())

    def record_fault(self, fault, mode="ddp", seconds=None):
        for attempt in range(ATTEMPTS):
            subprocess.run(["rm", "-rf", str(self.trace_path())], check=True)
            run = self.record_digits(f"--fault={fault}", f"--mode={mode}", seconds=seconds)
            if run.code != 0:
                return run
        if mode != "ddp":  # what every rank then computes with is the same again
            return run
        return self.fail(f"--fault={fault} did not show in {ATTEMPTS} runs")

    def replay_many(self, ranks, times):
        """(rank, Run) of `times` replays of each of `ranks`, AT_ONCE at a time."""
        jobs = [rank for _ in range(REPLAYS or times) for rank in ranks]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            return list(zip(jobs, pool.map(self.replay, jobs)))

    def assertReplaysGiveSameWeights(self, recorded, ranks, times):
        expected = weights(recorded)
        replays = self.replay_many(ranks, times)
        self.assertEqual(len(replays), len(ranks) * (REPLAYS or times))
        for rank, run in replays:
            self.assertEqual(run.code, 0, f"\n{run}")
            self.assertEqual(weights(run), {rank: expected[rank]}, f"\n{run}")


class SameWeights(DigitsReplay):
    def check_mode(self, mode, times):
        recorded = self.checked(self.record_digits(f"--mode={mode}", "--steps=150"))
        self.assertEqual(sorted(weights(recorded)), list(RANKS))
        self.assertReplaysGiveSameWeights(recorded, RANKS, times)

    def test_ddp(self):
        self.check_mode("ddp", 20)

    def test_sharded(self):
        self.check_mode("sharded", 5)

    def test_pipeline(self):
        self.check_mode("pipeline", 5)

    def test_hybrid(self):
        self.check_mode("hybrid", 5)


class SameEnd(DigitsReplay):
    """With faults: a replay ends as its rank ended, exit code 0, no divergence."""

    def assertReplaysEndAlike(self, times=3):
        for rank, run in self.replay_many(RANKS, times):
            self.assertEqual(run.code, 0, f"rank {rank}\n{run}")

    def each_mode(self, fault, check, seconds=None):
        """Some faults do not show in modes in which what they damage is overwritten; a recording it is anyway."""
        for mode in FAULT_MODES:
            with self.subTest(mode=mode):
                check(self.record_fault(fault, mode, seconds))

    def failing_rank(self, signal_name):
        ends = self.info_json()["ranks"]
        failed = [end["rank"] for end in ends if signal_name in str(end)]
        self.assertEqual(len(failed), 1, ends)
        return failed[0]

    def test_crash(self):
        def check(recorded):
            self.assertEqual(recorded.code, 128 + signal.SIGSEGV, f"\n{recorded}")
            rank = self.failing_rank("SIGSEGV")
            outputs = set()
            for _, run in self.replay_many([rank], 10):
                self.assertEqual(run.code, 0, f"\n{run}")
                self.assertRegex(run.stdout + run.stderr, r"sampler\.cc:\d+")
                outputs.add(run.stdout)
            self.assertEqual(len(outputs), 1, "\n".join(outputs))
            self.assertReplaysEndAlike()
        self.each_mode("crash", check)

    def test_nan(self):
        def check(recorded):
            self.assertIn(recorded.code, (0, 1), f"\n{recorded}")
            self.assertReplaysEndAlike()
        self.each_mode("nan", check)

    def test_corrupt(self):
        def check(recorded):
            self.assertIn(recorded.code, (0, 1), f"\n{recorded}")
            # Ranks that found out ended before they had weights to print.
            self.assertReplaysGiveSameWeights(recorded, sorted(weights(recorded)), 3)
            self.assertReplaysEndAlike(times=1)
        self.each_mode("corrupt", check)

    def test_desync(self):
        self.each_mode("desync", lambda _: self.assertReplaysEndAlike(), seconds=20)

    def test_shape(self):
        self.each_mode("shape", lambda _: self.assertReplaysEndAlike(), seconds=20)

    def test_hang(self):
        self.each_mode("hang", lambda _: self.assertReplaysEndAlike(times=1), seconds=20)

    def test_crash_of_a_pipeline(self):
        self.record_fault("crash", mode="hybrid")
        self.assertReplaysEndAlike(times=2)


if __name__ == "__main__":
    harness.main()
