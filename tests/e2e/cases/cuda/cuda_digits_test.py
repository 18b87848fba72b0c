#!/usr/bin/env python3
"""The example trainer with its numbers on a device, here the simulated driver's, whose streams run late."""
import ctypes
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import digits  # noqa: E402
import harness  # noqa: E402

PROGRAM = "cuda_digits"
ARGS = ["--steps=12", "--batch=8", "--log-every=4", "--snapshot-every=5"]
ON_DEVICE = ["--device=cuda", *ARGS]
RANKS = range(4)


class Trains(harness.DejaTest):
    """The same source for the processor and for kernels: the same bits, where the driver runs kernels on the
    processor."""

    def check_like_host(self, *args, delay="200"):
        """The run in host memory, whose output the one on the device had, too."""
        host = self.launch("digits_train", [*ARGS, *args])
        device = self.launch(PROGRAM, [*ON_DEVICE, *args], env={"CUDA_SIM_DELAY_US": delay})
        self.assertEqual((device.code, harness.comparable(device.stdout)), (host.code, harness.comparable(host.stdout)),
                         f"\n{device}")
        return host

    def test_as_in_host_memory(self):
        for mode in digits.MODES:
            with self.subTest(mode=mode):
                host = self.checked(self.check_like_host(f"--mode={mode}", "--seed=3"))
                self.assertEqual(sorted(digits.weights(host)), list(RANKS))

    def test_whenever_the_streams_run(self):
        for delay in ("0", "1000"):
            self.checked(self.check_like_host("--seed=4", delay=delay))

    def test_other_sizes(self):
        """A batch that is no multiple of the test images, one rank, parameters that three ranks cannot share evenly."""
        for n, mode in ((1, "ddp"), (3, "sharded")):
            args = ["--steps=2", "--batch=7", f"--mode={mode}", "--seed=5"]
            host = self.checked(self.launch("digits_train", args, n=n))
            device = self.checked(self.launch(PROGRAM, ["--device=cuda", *args], n=n))
            self.assertSameLines(host.stdout, device.stdout)

    def test_no_driver(self):
        run = self.checked(self.command([harness.DEJA, "launch", "-n", 1, "--", harness.app("digits_train"), *ON_DEVICE]),
                           harness.EXIT_FAILURE)
        self.assertIn("digits_train: --device=cuda needs CUDA's driver: libcuda.so.1", run.stderr)

    def test_no_device(self):
        run = self.checked(self.launch(PROGRAM, ON_DEVICE, n=1, env={"CUDA_VISIBLE_DEVICES": ""}), harness.EXIT_FAILURE)
        self.assertIn("digits_train: cuInit of the driver returned 100", run.stderr)


class Replays(harness.DejaTest):
    def record_on_device(self, *args, **kwargs):
        return self.record(PROGRAM, [*ON_DEVICE, *args], **kwargs)

    def check_each_rank(self, recorded):
        expected = digits.weights(recorded)
        for rank in RANKS:
            run = self.checked(self.replay(rank))
            self.assertEqual(digits.weights(run), {rank: expected[rank]}, f"\n{run}")

    def check_mode(self, mode):
        recorded = self.checked(self.record_on_device(f"--mode={mode}"))
        self.assertNotIn("not recorded", self.deja("info", self.trace_path()).stdout)
        self.check_each_rank(recorded)

    def test_ddp(self):
        self.check_mode("ddp")

    def test_sharded(self):
        self.check_mode("sharded")

    def test_pipeline(self):
        self.check_mode("pipeline")

    def test_hybrid(self):
        self.check_mode("hybrid")

    def test_from_a_checkpoint(self):
        for mode in ("ddp", "sharded"):
            with self.subTest(mode=mode):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                recorded = self.checked(self.record_on_device(f"--mode={mode}", options=["--checkpoint-every", 4]))
                expected = digits.weights(recorded)
                for rank in RANKS:
                    run = self.checked(self.replay(rank, options=["--from-step", 10]))
                    self.assertIn("from the checkpoint at step 8\n", run.stderr)
                    self.assertEqual(digits.weights(run), {rank: expected[rank]}, f"\n{run}")

    def test_the_drivers_cache_of_kernels(self):
        """It is the machine's: each run changes it, and a replay leaves it as it is where the kernel has a fence."""
        cache = self.dir / "cache"
        cache.mkdir()
        (cache / "index").write_bytes(bytes(4096))
        recorded = self.checked(self.record_on_device(n=2, env={"CUDA_CACHE_PATH": cache}))
        self.assertGreater((cache / "index").stat().st_size, 4096)
        self.assertNotIn("index", self.deja("show", self.trace_path(), "--kind", "file").stdout)
        (cache / "index").write_bytes(bytes(160))
        run = self.checked(self.replay(1))
        self.assertEqual(digits.weights(run), {1: digits.weights(recorded)[1]}, f"\n{run}")
        landlock_create_ruleset, version = 444, 1
        if ctypes.CDLL(None).syscall(landlock_create_ruleset, None, 0, version) > 0:
            self.assertEqual((cache / "index").stat().st_size, 160)

    def test_level_digest(self):
        """Nothing is served: four ranks on one device compute their collectives, and all digests are those recorded."""
        recorded = self.checked(self.record_on_device(level="digest"))
        run = self.checked(self.deja("replay", self.trace_path(), "--all", "--devices", 1))
        self.assertEqual(digits.weights(run), digits.weights(recorded), f"\n{run}")
        for rank in RANKS:
            self.assertRegex(run.stdout, rf"rank {rank}: exit 0, the same as recorded; .*computed.* all equal")

    def test_divergence(self):
        """Another learning rate: the weights after the first update, which come from the device, differ."""
        self.checked(self.record_on_device())
        run = self.deja("replay", self.trace_path(), "--rank", 1, "--", harness.app(PROGRAM), *ON_DEVICE, "--learning-rate=0.009")
        self.checked(run, harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"step 0, deja_tensor: snapshot conv1\.weight differs .*; 72 elements differ")


class Faults(harness.DejaTest):
    """Seeds with which the faults come at once: they end on the device as in host memory, in replays as recorded."""

    def record_fault(self, fault, *args):
        args = [*args, f"--fault={fault}", "--log-every=4"]
        host = self.launch("digits_train", args)
        recorded = self.record(PROGRAM, ["--device=cuda", *args])
        self.assertEqual(recorded.code, host.code, f"\n{recorded}\n{host}")
        # Which sign a NaN has is the order of operands, which compilers choose.
        self.assertSameLines(recorded.stdout.replace("-nan", "nan"), host.stdout.replace("-nan", "nan"))
        for rank in RANKS:
            run = self.checked(self.replay(rank))
            self.assertIn("the same as recorded", run.stdout)
        return recorded

    def test_nan(self):
        recorded = self.record_fault("nan", "--seed=5", "--steps=8", "--batch=64")
        self.assertEqual(recorded.code, 1)
        self.assertIn("the loss is not a number at step 8", recorded.stderr)

    def test_corrupt(self):
        recorded = self.record_fault("corrupt", "--seed=2", "--steps=12", "--batch=8")
        self.assertEqual(recorded.code, 1)
        self.assertEqual(len(set(digits.weights(recorded).values())), 2)

    def check_replays_end_alike(self, ends):
        """`ends`: what the verdict says of each rank."""
        for rank in RANKS:
            run = self.checked(self.replay(rank))
            self.assertRegex(run.stdout, rf"rank {rank}: {ends}")

    def test_hang(self):
        """A rank waits for good, the others' streams wait for it, and the job gets a signal to end."""
        args = ["--device=cuda", "--fault=hang", "--seed=2", "--batch=8"]
        process = self.start(self.record_argv(PROGRAM, args))
        try:
            process.communicate(timeout=6)
            self.fail("it has come to its end")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
        # They are gone before they can learn that the others are.
        self.assertNotIn(b"failed", err)
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertRegex(info, r"comm 0: ranks 0, 1 and 2 reached AllReduce #10; rank 3 never entered it: its last was AllReduce #4 at comms\.h:\d+")
        self.assertRegex(info, r"rank 3: SIGTERM at .*, in step 1, after AllReduce #4 of comm 0")
        self.check_replays_end_alike(r"the end of the recording is reached: SIGTERM at .*, in step \d, after AllReduce #\d+ of comm 0")

    def test_hang_of_a_pipeline(self):
        """The first stages only send to the one that hangs: their streams wait in a send, and do so in a replay."""
        args = ["--device=cuda", "--mode=pipeline", "--fault=hang", "--seed=2", "--batch=8"]
        process = self.start(self.record_argv(PROGRAM, args))
        try:
            process.communicate(timeout=6)
            self.fail("it has come to its end")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        self.check_replays_end_alike(r"the end of the recording is reached: SIGTERM at ")

    def test_desync(self):
        """One rank is a collective ahead: it finds wrong weights and ends, and the others wait for it."""
        for mode, last in (("ddp", 101), ("sharded", 71)):
            with self.subTest(mode=mode):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                args = ["--device=cuda", "--fault=desync", "--seed=2", "--steps=30", "--batch=8", "--log-every=4", f"--mode={mode}"]
                recorded = self.checked(self.record(PROGRAM, args, options=["--grace", 60]), 1)
                for rank in (0, 1, 2):
                    self.assertRegex(recorded.stderr, rf"rank {rank}: an operation of earlier calls on communicator world failed: ")
                info = self.checked(self.deja("info", self.trace_path())).stdout
                self.assertRegex(info, rf"comm 0: ranks 0, 1 and 2 reached AllGather #{last}; rank 3 never entered it: its last was "
                                       rf"AllGather #{last - 1} at comms\.h:\d+")
                self.assertRegex(info, rf"rank 3: exit 1, in step 29, after AllGather #{last - 1} of comm 0")
                self.check_replays_end_alike("exit 1, the same as recorded")

    def test_shape(self):
        recorded = self.record_fault("shape", "--seed=2", "--steps=30", "--batch=8")
        self.assertEqual(recorded.code, 1)
        self.assertIn("rank 3's weights are not those of rank 0", recorded.stderr)

    def test_crash(self):
        """The others' calls have returned long before: a thread of theirs sees that the operations failed."""
        args = ["--device=cuda", "--fault=crash", "--seed=13", "--steps=8", "--batch=64"]
        # Else a rank that is slow to see it is terminated as soon as another one has ended.
        recorded = self.checked(self.record(PROGRAM, args, options=["--grace", 60]), 128 + signal.SIGSEGV)
        for rank in (0, 1, 2):
            self.assertRegex(recorded.stderr, rf"rank {rank}: an operation of earlier calls on communicator world failed: ")
        for rank in RANKS:
            run = self.checked(self.replay(rank))
            self.assertRegex(run.stdout, r"SIGSEGV at sampler\.cc:\d+, the same" if rank == 3 else "exit 1, the same as recorded")


if __name__ == "__main__":
    harness.main()
