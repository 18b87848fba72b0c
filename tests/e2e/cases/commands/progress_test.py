"""Progress and colours: a line on a terminal that goes away again, nothing in a pipe, and no colours anywhere.

Progress begins after a second. The commands are stopped again and again, so that theirs comes on any machine.
"""
import os
import pty
import select
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

COLOURS = [f"\x1b[{start}" for start in ("1m", "3", "4", "9", "0;", "1;")]


class OnTerminal:
    """deja on a terminal of its own; `slowly`: it runs for a millisecond at a time."""

    def __init__(self, case, *words, slowly=True, **env):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(case.dir)
            os.execve(str(harness.DEJA), [str(harness.DEJA), *map(str, words)],
                      {**case.environment(None), "TERM": "xterm", "PAGER": "cat", **env})
        self.seen = ""
        turns = 0
        while not self.read():
            if not slowly:
                select.select([self.fd], [], [], 1)
                continue
            os.kill(pid, signal.SIGSTOP)
            turns += 1
            # Now and then for longer than it takes until progress begins: a quick command has few turns.
            time.sleep(1.1 if turns & (turns - 1) == 0 else 0.1)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.001)
        self.code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(self.fd)

    def read(self):
        """What it has written; true at its end."""
        while select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return True
            if not data:
                return True
            self.seen += data.decode(errors="replace")
        return False

    def left(self):
        """What is left on the screen when it has ended."""
        return [line.split("\r\x1b[K")[-1].strip("\r") for line in self.seen.split("\n")]


class Progress(harness.DejaTest):
    def setUp(self):
        self.checked(self.record("stepper", ["--steps=24", "--calls=1", "--count=1000000"], n=1))
        self.checked(self.deja("pack", self.trace_path()))

    def unfinished(self, name):
        """A copy of the trace as a process leaves it that is killed with its launcher."""
        copy = self.trace_path(name)
        shutil.copytree(self.trace_path(), copy)
        for path in copy.glob("rank-*/*.deja"):
            with open(path, "r+b") as file:
                file.truncate(path.stat().st_size - 100)
        return copy

    def commands(self):
        """Words of a command, what its line begins with, and the start of its result."""
        yield ["unpack", "run.deja.zip", "--out", "again.deja"], ("unpacking run.deja.zip: ", "writing "), "again.deja: 1 ranks"
        yield ["recover", self.unfinished("dead.deja")], ("recovering ",), "rank 0: "
        yield ["report", "run.deja.zip", "-o", "page.html"], ("unpacking run.deja.zip: ",), "page.html: "
        yield ["export", "run.deja.zip", "-o", "run.trace"], ("unpacking run.deja.zip: ",), "run.trace: "
        yield ["verify", "run.deja"], ("verifying run.deja: ",), "sound: "

    def test_a_terminal_and_a_pipe(self):
        for words, lines, result in self.commands():
            with self.subTest(command=words[0]):
                run = OnTerminal(self, *words)
                self.assertEqual(run.code, 0, run.seen)
                for line in lines:
                    self.assertIn(f"\r{line}", run.seen)
                self.assertTrue(any(line.startswith(result) for line in run.left()), run.seen)
                self.assertFalse([line for line in run.left() if line.startswith(lines)], run.seen)
                self.no_colours(run.seen)

    def test_journeys_in_gdb(self):
        at_once = "python import deja_gdb.status_line as s; s.BEGINS_AFTER_S = s.EVERY_S = 0.005"
        commands = [at_once, "deja goto step 20", "deja goto step 3", "quit"]
        run = OnTerminal(self, "replay", "run.deja", "--rank", "0", "--gdb",
                         *(word for command in commands for word in ("--gdb-command", command)), slowly=False)
        self.assertEqual(run.code, 0, run.seen)
        self.assertRegex(run.seen, "\rdeja: step [0-9]+ of 24\x1b\\[K\r")
        for step in 20, 3:
            self.assertIn(f"deja: step {step} begins", run.left(), run.seen)
        self.assertNotIn(" of 24", "".join(run.left()), run.seen)
        for kind in ["--interpreter=mi3"], []:
            words = ["replay", "run.deja", "--rank", "0", "--gdb", *kind, "--gdb-command", at_once,
                     "--gdb-command", "deja goto step 20", "--gdb-command", "quit"]
            run = OnTerminal(self, *words, slowly=False, TERM="xterm" if kind else "dumb")
            self.assertIn("step 20 begins", run.seen)
            self.assertNotIn(" of 24", run.seen)

    def test_no_line_where_none_can_be_erased(self):
        for env in {"TERM": "dumb"}, {"TERM": ""}:
            run = OnTerminal(self, "verify", "run.deja", **env)
            self.assertEqual(run.code, 0, run.seen)
            self.assertNotIn("verifying", run.seen)
            self.assertNotIn("\x1b", run.seen)

    def test_no_colours(self):
        """Deja has none, so that each of the variables that ask for or against them holds."""
        for words in ["verify", "run.deja"], ["info", "run.deja"], ["check", "run.deja"], ["show", "run.deja", "--last", "3"]:
            for env in {"NO_COLOR": "1"}, {"CLICOLOR": "0"}, {"CLICOLOR_FORCE": "1"}:
                run = OnTerminal(self, *words, slowly=False, **env)
                self.no_colours(run.seen)
            piped = self.checked(self.deja(*words, env={"CLICOLOR_FORCE": "1", "TERM": "xterm"}))
            self.assertNotIn("\x1b", piped.stdout + piped.stderr)
            self.assertNotIn("\r", piped.stdout + piped.stderr)

    def no_colours(self, text):
        for colour in COLOURS:
            self.assertNotIn(colour, text)


if __name__ == "__main__":
    harness.main()
