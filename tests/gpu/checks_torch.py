"""PyTorch: unseeded training with dropout, recorded, and each rank replayed alone, bit for bit."""
import os
import shutil

import check
import machine
from check import limit

APPS = machine.ROOT / "tests" / "e2e" / "apps" / "torch"


class Torch(check.Check):
    own_libraries = True

    def need(self):
        if not self.machine.device:
            self.skipTest(f"no GPU: {self.machine.no_device}")
        if not self.machine.torch:
            self.skipTest(self.machine.no_torch)

    def device(self):
        return "cpu" if self.machine.simulated else "cuda"

    def check_training(self, mode, n):
        if mode == "fsdp2" and self.machine.torch_release() < (2, 6):
            self.skipTest(f"torch {self.machine.torch} has no fully_shard")
        env = {"MODE": mode, "JOB_DEVICE": self.device()}
        run = self.checked(self.record(self.machine.python, [APPS / "train.py"], n=n, env=env))
        for rank, replay in enumerate(self.replays(n)):
            self.checked(replay)
            self.assertIn("the same as recorded", replay.stdout)
            lines = [[line for line in output.splitlines() if line.startswith(f"rank {rank} ")]
                     for output in (run.stdout, replay.stdout)]
            self.assertGreater(len(lines[0]), 5)
            self.assertEqual(lines[0], lines[1])
        self.detail = f"torch {self.machine.torch}" + (", on CPUs with gloo" if self.machine.simulated else "")

    @limit(150)
    def test_torch_ddp_2_ranks(self):
        """DistributedDataParallel, shuffled loader, dropout, Adam, no seed"""
        self.check_training("ddp", 2)

    @limit(180)
    def test_torch_ddp_4_ranks(self):
        """the same"""
        self.check_training("ddp", 4)

    @limit(150)
    def test_torch_fsdp_2_ranks(self):
        """fully_shard (FSDP2)"""
        self.check_training("fsdp2", 2)

    @limit(180)
    def test_torch_fsdp_4_ranks(self):
        """the same"""
        self.check_training("fsdp2", 4)

    @limit(200)
    def test_torch_compile_graphs(self):
        """torch.compile(mode="reduce-overhead"): the steps are CUDA graphs, and DDP's all-reduces between them; on CPUs
        compiled code without graphs"""
        if self.machine.torch_release() < (2, 0):
            self.skipTest(f"torch {self.machine.torch} has no torch.compile")
        compilers = ("CXX", "g++") if self.machine.simulated else ("CC", "gcc", "clang")
        if compilers[0] not in os.environ and not any(map(shutil.which, compilers[1:])):
            self.skipTest(f"torch.compile needs a compiler: {' or '.join(compilers[1:])}")
        self.check_training("graphs", 2)
        if self.machine.simulated:
            self.detail += ", without CUDA graphs"

    @limit(150)
    def test_torch_fsdp1_2_ranks(self):
        """FullyShardedDataParallel"""
        self.check_training("fsdp1", 2)
