"""Verbs for tests of jobs of torch.distributed.

DEJA_TORCH_PYTHON names the Python to use (default: Debian's, with python3-torch); DEJA_REPLAYS how often each rank is
replayed.
"""
import os
import subprocess

import harness

APPS = harness.ROOT / "tests" / "e2e" / "apps" / "torch"
REPLAYS = int(os.environ.get("DEJA_REPLAYS", "1"))
PYTHON = os.environ.get("DEJA_TORCH_PYTHON", "/usr/bin/python3")


def torch_version():
    """(major, minor); none when there is no torch with gloo."""
    asked = subprocess.run([PYTHON, "-c", "import torch, torch.distributed as d; assert d.is_gloo_available();"
                            "print(torch.__version__)"], capture_output=True, text=True, check=False)
    return tuple(int(n) for n in asked.stdout.split(".")[:2]) if asked.returncode == 0 else None


VERSION = torch_version()
# Debian's torch cannot read its launcher's own default for redirections with Debian's Python. No job has a rank 9.
REDIRECTIONS = ["-r", "9:1", "-t", "9:1"] if VERSION and VERSION < (2, 0) else []


def of_rank(rank, output):
    return [line for line in output.splitlines() if line.startswith(f"rank {rank} ")]


class TorchTest(harness.DejaTest):
    def record_job(self, script, n, *args, code=0, **env):
        run = self.record(PYTHON, [APPS / f"{script}.py", *args], n=n, env=env, timeout=300)
        self.checked(run, code)
        return run

    def assertRanksReplay(self, run, n):
        for rank in range(n):
            for _ in range(REPLAYS):
                replayed = self.checked(self.replay(rank, env={"MASTER_PORT": "1"}))
                self.assertIn("the same as recorded", replayed.stdout)
                self.assertIn("all equal", replayed.stdout)
                self.assertEqual(of_rank(rank, replayed.stdout), of_rank(rank, run.stdout))

    def assertJobReplays(self, script, n, **env):
        run = self.record_job(script, n, **env)
        self.assertRanksReplay(run, n)
        return run
