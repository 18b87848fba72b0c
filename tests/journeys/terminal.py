"""A shell on a pseudo-terminal for the tests of this folder. What is typed is counted. Needs pexpect."""
import os
import re
import signal
import sys
import time

import harness

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's pexpect
try:
    import pexpect
except ImportError:
    print("no pexpect here: tools/setup.sh --tests installs it")
    sys.exit(77)

PROMPT = "ready> "
GDB_PROMPT = r"\(gdb[^)\n]*\) "
_PROMPTS = f"{re.escape(PROMPT)}|{GDB_PROMPT}"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def _hear_interrupts():
    """Where the test runs in the background of a script they are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


class Terminal:
    def __init__(self, folder, path, **env):
        full = {k: v for k, v in os.environ.items() if not k.startswith(("DEJA_", "LD_"))}
        full.update(PATH=path, PS1=PROMPT, TERM="dumb", XDG_STATE_HOME=harness.STATE, HOME=str(folder), **env)
        self._shell = pexpect.spawn("/bin/sh", cwd=str(folder), env=full, encoding="utf-8", timeout=120, echo=False,
                                    dimensions=(50, 250), codec_errors="replace", preexec_fn=_hear_interrupts)
        self._shell.expect_exact(PROMPT)
        self._begin = time.monotonic()
        self.typed = []

    def type(self, line, stop_at=None):
        """Types a line and returns what comes before the next prompt. stop_at: the text that Ctrl-C follows, and
        another one where Deja asks for it."""
        self.typed.append(line)
        self._shell.sendline(line)
        seen = ""
        if stop_at is not None:
            self._shell.expect(stop_at)
            seen = self._shell.before + self._shell.after
            time.sleep(1)  # the ranks get where they wait for each other
            self._shell.sendintr()
            if self._shell.expect([_PROMPTS, "press it again"]) == 0:
                return _CONTROLS.sub("", seen + self._shell.before)
            seen += self._shell.before + self._shell.after
            self._shell.sendintr()
        self._shell.expect(_PROMPTS)
        return _CONTROLS.sub("", seen + self._shell.before)

    def seconds(self):
        return time.monotonic() - self._begin

    def close(self):
        self._shell.close(force=True)
