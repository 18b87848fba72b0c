"""What Deja costs here. Each figure is a ratio to the same thing without it, measured in turns; none makes a check
fail."""
import json
import re
import statistics
import subprocess
import time

import check
import harness
import machine
from check import limit

APPS = machine.ROOT / "tests" / "e2e" / "apps" / "torch"
WARM_UP = 3  # first steps that do not count
RECORDINGS = {"order": ["--level", "order"], "digest": ["--level", "digest"], "full": ["--level", "full"],
              "window": ["--level", "full", "--keep-steps", "2"]}


class Figures(check.Check):
    def step_times(self, argv, env=None):
        """Lines of rank 0 as they come: seconds between a step's end and the next one's."""
        process = self.start(argv, env=env, stderr=subprocess.STDOUT)
        times, output = [], []
        for line in iter(process.stdout.readline, b""):
            output.append(line.decode(errors="replace"))
            if re.match(rb"rank 0 step \d+", line):
                times.append(time.monotonic())
            if time.monotonic() > self.deadline:
                process.kill()
                self.fail(f"no end in time: {argv}")
        self.assertEqual(process.wait(), 0, "".join(output))
        steps = [later - earlier for earlier, later in zip(times, times[1:])]
        self.assertGreater(len(steps), WARM_UP + 1, "".join(output))
        return steps[WARM_UP:]

    def measure(self, name, program, args, n, rounds, env=None):
        """Median step times without Deja, at each level, and of a replay, in turns."""
        plain = self.launch_argv(program, args, n)
        times = {way: [] for way in ["none", *RECORDINGS, "replay"]}
        for _ in range(rounds):
            times["none"] += self.step_times(plain, env)
            for level, options in RECORDINGS.items():
                trace = self.trace_path(f"{level}.deja")
                times[level] += self.step_times(
                    [harness.DEJA, "record", "--force", "--out", trace, *options, "--", *plain], env)
            # Only level full has anything to serve.
            times["replay"] += self.step_times([harness.DEJA, "replay", self.trace_path("full.deja"), "--rank", 0], env)
        medians = {way: statistics.median(seconds) for way, seconds in times.items()}
        self.settings.figures[name] = {"ranks": n, "rounds": rounds, "step_seconds": medians, "all_step_seconds": times}
        self.detail = f"step {medians['none'] * 1e3:.2f} ms; " + ", ".join(
            f"{way} {medians[way] / medians['none']:.3f}x" for way in medians if way != "none")

    @limit(200)
    def test_figure_step(self):
        """step times of two ranks with streams, groups and kernels, in turns: none, order, digest, full, window,
        replay"""
        count, steps, rounds = self.small((3000, 12, 1), (1000000, 40, 3))
        self.measure("step", "cuda_steps", ["--unseeded", "--say-steps", f"--count={count}", f"--steps={steps}"], 2, rounds)

    def measure_gpt(self, name, n):
        if not self.machine.torch:
            self.skipTest(self.machine.no_torch)
        if self.machine.torch_release() < (2, 0):
            self.skipTest(f"torch {self.machine.torch} has no scaled_dot_product_attention")
        self.own_libraries = True
        small = ["--layers", "1", "--width", "64", "--tokens", "16", "--batch", "1", "--steps", "8"]
        self.measure(name, self.machine.python, [APPS / "gpt.py", *self.small(small, ["--steps", "15"])], n, 1,
                     {"JOB_DEVICE": self.small("cpu", "cuda")})

    @limit(200)
    def test_figure_gpt2_1_rank(self):
        """the same of GPT-2 small under DistributedDataParallel, where NCCL does nothing but copies"""
        self.measure_gpt("gpt2_1_rank", 1)

    @limit(240)
    def test_figure_gpt2_2_ranks(self):
        """the same with two ranks, whose collectives go through sockets"""
        self.measure_gpt("gpt2_2_ranks", 2)

    def test_figure_digest_bandwidth(self):
        """the digest kernel's bandwidth beside that of a copy from device to device"""
        if self.machine.simulated:
            self.skipTest("bandwidth of memory cannot be simulated")
        try:
            program = harness.app("digest_bandwidth")
        except FileNotFoundError:
            self.skipTest("there was no release build with digest_bandwidth when this folder was packed")
        libraries = [self.environment(None).get("LD_LIBRARY_PATH", ""), str(machine.ROOT / "lib" / "carried")]
        run = self.command([program], env={"LD_LIBRARY_PATH": ":".join(filter(None, libraries))})
        if run.code == 77:
            self.skipTest(run.stdout.strip())
        self.checked(run)
        ratios = [float(found) for found in re.findall(r"ratio ([0-9.]+)", run.stdout)]
        self.assertTrue(ratios, run)
        self.settings.figures["digest_bandwidth"] = run.stdout.splitlines()
        self.detail = f"{min(ratios):.2f} to {max(ratios):.2f} of a copy's, {len(ratios)} types and sizes"
