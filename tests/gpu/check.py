"""The base of all checks: the verbs of tests/e2e/harness.py, for ranks that share one GPU."""
import dataclasses
import shlex
import sys
import time
from pathlib import Path

import machine as machines

sys.path.insert(0, str(machines.ROOT / "tests" / "e2e"))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

RANKS = Path(__file__).resolve().parent / "ranks.sh"


@dataclasses.dataclass
class Settings:
    machine: machines.Machine
    end: float  # time.monotonic() when all must be done
    out: Path  # folder of logs and figures
    figures: dict  # what checks have measured, by name


SETTINGS = None  # set by run.py


def limit(seconds):
    """A check that may take so long; others may take a minute."""
    def mark(method):
        method.limit = seconds
        return method
    return mark


class Check(DeviceJobs):
    """A check is a method test_NAME; its docstring is what --list says. What it has found goes into `detail`."""
    detail = ""
    own_libraries = False  # the ranks are PyTorch's

    def setUp(self):
        method = getattr(self, self._testMethodName)
        self.settings = SETTINGS
        self.machine = SETTINGS.machine
        self.deadline = min(time.monotonic() + getattr(method, "limit", 60), SETTINGS.end)
        self.need()

    def need(self):
        """Skips what this machine has nothing for."""
        if not self.machine.device:
            self.skipTest(f"no GPU: {self.machine.no_device}")
        if not self.machine.simulated and not self.machine.nccl:
            self.skipTest(self.machine.no_nccl)

    def small(self, here, otherwise):
        """A size for the simulated driver, whose kernels run on this processor, and one for a GPU."""
        return here if self.machine.simulated else otherwise

    # ---- verbs

    def environment(self, env):
        ranks = {**self.machine.environment(self.own_libraries), "RANKS_PORT": harness.free_port()}
        if self.own_libraries:
            ranks["RANKS_STORE"] = "1"
        return super().environment({**ranks, **(env or {})})

    def finish(self, process, timeout=None):
        try:
            return super().finish(process, timeout=max(1, self.deadline - time.monotonic()))
        except self.failureException:
            if time.monotonic() >= self.settings.end:
                self.skipTest("the time of the whole run was over")
            raise

    def launch_argv(self, program, args=(), n=4, options=()):
        return [RANKS, n, *options, harness.app(program), *args]

    def record_argv(self, program, args=(), n=4, level="full", trace="run.deja", options=()):
        return [harness.DEJA, "record", "--level", level, "--out", self.trace_path(trace), *options, "--",
                *self.launch_argv(program, args, n)]

    def replays(self, n, options=()):
        """Every rank alone, all at the same time."""
        processes = [self.start([harness.DEJA, "replay", self.trace_path(), "--rank", rank, *options])
                     for rank in range(n)]
        return [self.finish(process) for process in processes]

    def check_all_replays(self, args=(), n=2, **kwargs):
        """Records, and replays each rank alone: it prints the line that it printed."""
        recorded = self.checked(self.record(self.PROGRAM, args, n=n, **kwargs))
        self.assertNotIn("not recorded", self.deja("info", self.trace_path()).stdout)
        for rank, run in enumerate(self.replays(n)):
            self.checked(run)
            self.assertIn("the same as recorded", run.stdout)
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))
        return recorded

    def last_command(self):
        return self._commands[-1] if getattr(self, "_commands", None) else ""

    def with_environment(self):
        """The variables that the commands of this check need, for a shell."""
        return " ".join(f"{k}={shlex.quote(v)}" for k, v in self.machine.environment(self.own_libraries).items())
