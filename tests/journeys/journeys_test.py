"""What a new user types, on a terminal, from an installed Deja to the line of a bug: three programs.

Prints the commands and the seconds of each journey. DEJA_TORCH_PYTHON names the Python of the two that use torch.
"""
import os
import re
import shutil
import sys
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "e2e"), "/usr/lib/python3/dist-packages"]  # pexpect is Debian's
import harness  # noqa: E402
from installed import InstalledDeja  # noqa: E402
from torch_jobs import PYTHON, VERSION  # noqa: E402

try:
    import pexpect
except ImportError:
    print("no pexpect here: tools/setup.sh --tests installs it")
    sys.exit(77)

PROGRAMS = ROOT / "examples" / "first"
PROMPT = "ready> "
MOST_COMMANDS = 4


class Terminal:
    """A shell on a pseudo-terminal. What is typed is counted."""

    def __init__(self, folder, path):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("DEJA_", "LD_"))}
        env.update(PATH=path, PS1=PROMPT, TERM="dumb", XDG_STATE_HOME=harness.STATE, HOME=str(folder), PAGER="cat")
        self._shell = pexpect.spawn("/bin/sh", cwd=str(folder), env=env, encoding="utf-8", timeout=120, echo=False,
                                    dimensions=(50, 200), codec_errors="replace")
        self._shell.expect_exact(PROMPT)
        self._begin = time.monotonic()
        self.typed = []
        self.all = ""

    def type(self, line, prompt=PROMPT):
        """Types a line and returns what comes before the next prompt."""
        self.typed.append(line)
        self._shell.sendline(line)
        return self._seen(prompt)

    def interrupt(self, line, when, prompt=PROMPT):
        """Types a line, and Ctrl-C a moment after the output has `when`."""
        self.typed.append(line)
        self._shell.sendline(line)
        self._shell.expect(when)
        seen = self._shell.before + self._shell.after
        time.sleep(1)
        self._shell.sendintr()
        return seen + self._seen(prompt)

    def _seen(self, prompt):
        self._shell.expect(prompt if prompt != PROMPT else re.escape(prompt))
        seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._shell.before.replace("\r\n", "\n"))
        self.all += seen
        return seen

    def end(self, name):
        print(f"journey: {name}: {len(self.typed)} commands, {time.monotonic() - self._begin:.0f} s", flush=True)
        for line in self.typed:
            print(f"    {line}", flush=True)
        self._shell.close(force=True)


class Journeys(InstalledDeja):
    @classmethod
    def setUpClass(cls):
        cls.installed = Path(harness.own_folder("deja-journeys-")) / "deja"
        harness.subprocess.run(["cmake", "--install", harness.BUILD, "--prefix", cls.installed], check=True,
                               stdout=harness.subprocess.DEVNULL)

    def setUp(self):
        self.use(self.installed)

    def terminal(self, *programs):
        for program in programs:
            shutil.copy(PROGRAMS / program, self.dir)
        return Terminal(self.dir, f"{self.prefix / 'bin'}:{Path(PYTHON).parent}:/usr/bin:/bin")

    def line_of_bug(self, program):
        lines = (PROGRAMS / program).read_text().splitlines()
        return next(n for n, line in enumerate(lines, 1) if "the bug" in line)

    def assertArrived(self, terminal, name):
        terminal.end(name)
        self.assertLessEqual(len(terminal.typed), MOST_COMMANDS, terminal.typed)

    def test_a_nan_of_memory_that_was_never_written(self):
        built = ["sh", "-c", "c++ -g -O0 short_batch.cc $(pkg-config --cflags --libs deja-nccl-loopback) -o short_batch"]
        terminal = self.terminal("short_batch.cc")
        self.checked(self.command(built, env={"PKG_CONFIG_PATH": self.pkg_config_folder()}))
        said = terminal.type("deja record --loopback -n 4 --out run.deja -- ./short_batch")
        self.assertIn("rank 2: the mean is nan in step 30", said)
        gdb = r"\(gdb[^)]*\) "
        terminal.type("deja replay run.deja --rank 2 --gdb", gdb)
        said = terminal.type("deja until nan", gdb)
        self.assertIn("a NaN goes into AllReduce #31", said)
        said = terminal.type("deja when-changed gradient", gdb)
        line = self.line_of_bug("short_batch.cc") + 1
        self.assertIn(f"short_batch.cc:{line}", said)
        self.assertArrived(terminal, "a NaN of memory that was never written")


if __name__ == "__main__":
    unittest.main(verbosity=2)
