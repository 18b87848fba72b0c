"""PyTorch's wheel on devices of the simulated driver, for its NCCL backend.

A folder for PYTHONPATH in which torch is the wheel's. The libraries of NVIDIA's that it finds by its RPATH are the
stand-ins of tests/fakes/cuda. The wheel is not touched: the folder has links, to its files and to the stand-ins.
"""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import harness
from torch_jobs import APPS, PYTHON, REPLAYS, TorchTest, of_rank

STAND_INS = {"cuda_runtime": "libcudart.so.12", "nccl": "libnccl.so.2"}
_ASKED = "import torch, torch.distributed as d; print(torch.__path__[0], d.is_available() and d.is_nccl_available(), torch.version.cuda)"


def site_of(python):
    """The folder that has torch in it; none if that torch cannot use the stand-ins."""
    asked = subprocess.run([python, "-c", _ASKED], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        return None
    path, nccl, cuda = asked.stdout.split()
    site = Path(path).parent
    return site if nccl == "True" and cuda.startswith("12.") and (site / "nvidia" / "nccl").is_dir() else None


def links(source, target, but=()):
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name not in but:
            (target / entry.name).symlink_to(entry)


def make(site, folder, stand_ins):
    """`folder` becomes what PYTHONPATH needs; `stand_ins` is the folder with the libraries."""
    links(site / "torch", folder / "torch", but=("lib", "__pycache__"))
    links(site / "torch" / "lib", folder / "torch" / "lib")  # whose $ORIGIN is this folder, and not the link's target
    links(site / "nvidia", folder / "nvidia", but=STAND_INS)
    for package, library in STAND_INS.items():
        (folder / "nvidia" / package / "lib").mkdir(parents=True)
        (folder / "nvidia" / package / "lib" / library).symlink_to(stand_ins / library)


SITE = site_of(PYTHON)
WHY_NOT = f"{PYTHON} has no torch with NCCL for CUDA 12, as the wheel from PyPI has"


class SimulatedTorchTest(TorchTest):
    @classmethod
    def setUpClass(cls):
        cls.site = Path(tempfile.mkdtemp(prefix="deja-torch-"))
        cls.addClassCleanup(shutil.rmtree, cls.site, ignore_errors=True)
        make(SITE, cls.site, harness.BUILD / "tests" / "cuda")

    def torchrun(self, script, *args, n=2):
        return [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", n, "--master-port", harness.free_port(), APPS / f"{script}.py", *args]

    def on_devices(self, **env):
        path = os.pathsep.join([str(self.site), str(harness.ROOT / "python")])
        return {"PYTHONPATH": path, "JOB_DEVICE": "cuda", **env}

    def run_without_deja(self, script, *args, code=0, **env):
        return self.checked(self.command(self.torchrun(script, *args), env=self.on_devices(**env), timeout=300), code)

    def record_torchrun(self, script, *args, code=0, options=("--level", "full"), **env):
        argv = ["record", "--out", self.trace_path(), *options, "--", *self.torchrun(script, *args)]
        return self.checked(self.deja(*argv, env=self.on_devices(**env), timeout=300), code)

    def replay_rank(self, rank, **env):
        """Alone: without torchrun, without a store, and with no port to reach one by."""
        return self.checked(self.replay(rank, env=self.on_devices(MASTER_PORT="1", **env), timeout=300))

    def assertRanksReplay(self, run, n=2):
        for rank in range(n):
            for _ in range(REPLAYS):
                replayed = self.replay_rank(rank)
                self.assertIn("the same as recorded", replayed.stdout)
                self.assertIn("all equal", replayed.stdout)
                self.assertEqual(of_rank(rank, replayed.stdout), of_rank(rank, run.stdout))

    def assertSameOutput(self, one, other, n=2):
        for rank in range(n):
            self.assertEqual(of_rank(rank, one.stdout), of_rank(rank, other.stdout))
            self.assertNotEqual(of_rank(rank, one.stdout), [])
