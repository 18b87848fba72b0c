"""Replays that the user ends: by Ctrl-C, by kill, by closing the terminal. Nothing of them stays, and no verdict is
made up."""
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

LOOP = "import signal, sys\n{}\nprint('loops', flush=True)\nwhile True: pass\n"
# A child of a child in a session of its own, whose parent is gone; it stays in a loop, too.
ORPHAN = ("import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() != 0: os._exit(0)\n    while True: pass\n"
          "os.wait()")
# As a loader's: they end when the program has closed its end of their pipe.
WORKERS = """\
import os
ready, end = os.pipe(), os.pipe()
for _ in range(2):
    if os.fork() == 0:
        os.close(end[1])
        os.write(ready[1], b"r")
        os.read(end[0], 1)
        os._exit(0)
for _ in range(2):
    os.read(ready[0], 1)
os.sync()
os.close(end[1])
for _ in range(2):
    os.wait()
"""
DEAF = "signal.signal(signal.SIGINT, signal.SIG_IGN)"


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_lines():
    """Lists all processes."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            pass
    return found


class Interrupted(harness.DejaTest):
    def record_loop(self, first=""):
        """A program that never ends, killed; marked by the test's own folder among its arguments."""
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c",
                              LOOP.format(first), self.dir])
        self.read_until(process.stdout, b"loops")
        for pid, line in command_lines().items():
            if f" {self.dir} " in line and line.startswith(sys.executable):
                os.kill(pid, signal.SIGKILL)
        self.finish(process)
        self.temporary = self.dir / "tmp"
        self.temporary.mkdir()

    def read_until(self, stream, word):
        text = b""
        while word not in text:
            piece = stream.read(1)
            self.assertTrue(piece, text)
            text += piece

    def replay_loop(self, *options):
        process = self.start([harness.DEJA, "replay", self.trace_path(), *options], env={"TMPDIR": self.temporary})
        self.read_until(process.stderr if "--json" in options else process.stdout, b"loops")
        self.assertTrue(list(self.temporary.iterdir()), "there is a scratch folder while it runs")
        return process

    def assertNothingIsLeft(self):
        self.assertEqual(list(self.temporary.iterdir()), [])
        for _ in range(100):
            left = [line for line in command_lines().values() if f" {self.dir} " in line and "replay" not in line.split()]
            if not left:
                return
            time.sleep(0.1)
        self.fail(f"still running: {left}")

    def test_by_the_terminal(self):
        self.record_loop()
        for options in [], ["--json"]:
            process = self.replay_loop(*options)
            os.killpg(process.pid, signal.SIGINT)
            run = self.finish(process)
            self.assertEqual(run.code, 128 + signal.SIGINT, f"\n{run}")
            self.assertIn("interrupted by SIGINT", run.stderr)
            self.assertNotIn("diverged", run.stdout + run.stderr)
            if options:
                self.assertEqual(run.json()["interrupted"], "SIGINT")
            self.assertNothingIsLeft()

    def test_a_program_that_does_not_listen(self):
        self.record_loop(DEAF)
        process = self.replay_loop()
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.2)  # signals of one kind that wait are one
        self.assertEqual(self.finish(process).code, 128 + signal.SIGINT)
        self.assertNothingIsLeft()

    def test_by_kill_and_by_a_closed_terminal(self):
        self.record_loop()
        for number in signal.SIGTERM, signal.SIGHUP:
            process = self.replay_loop()
            os.kill(process.pid, number)
            run = self.finish(process)
            self.assertEqual(run.code, 128 + number, f"\n{run}")
            self.assertIn(f"interrupted by {number.name}", run.stderr)
            self.assertNothingIsLeft()

    def test_by_sigkill_of_whichever_process(self):
        self.record_loop(ORPHAN)
        for whom in "command", "worker", "guardian", "group":
            with self.subTest(whom=whom):
                process = self.replay_loop()
                guardian, = children_of(process.pid)
                worker, = children_of(guardian)
                if whom == "group":
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    os.kill({"command": process.pid, "worker": worker, "guardian": guardian}[whom], signal.SIGKILL)
                self.finish(process)
                for _ in range(200):  # what is left after the command's end is removed by the others
                    if not list(self.temporary.iterdir()):
                        break
                    time.sleep(0.1)
                self.assertNothingIsLeft()

    def test_gdb_whose_terminal_is_closed(self):
        if shutil.which("gdb") is None:
            self.skipTest("gdb is not installed")
        self.record_loop()
        master, terminal = pty.openpty()
        process = self.start([harness.DEJA, "replay", self.trace_path(), "--gdb"], env={"TMPDIR": self.temporary}, stdin=terminal,
                             stdout=terminal, stderr=terminal)
        os.close(terminal)
        with os.fdopen(master, "r+b", buffering=0) as screen:
            self.read_until(screen, b"(gdb) ")
            screen.write(b"run\n")
            self.read_until(screen, b"loops")
            # What the kernel sends to the terminal's session when it is closed.
            os.kill(process.pid, signal.SIGHUP)
            self.assertEqual(self.finish(process).code, 128 + signal.SIGHUP)
        self.assertNothingIsLeft()

    def program(self):
        """Processes of the replayed program."""
        return {pid for pid, line in command_lines().items() if f" {self.dir} " in line and line.startswith(sys.executable)}

    def await_program(self, size, others=frozenset()):
        """Returns its processes once there are `size` of them, none of `others` among them."""
        for _ in range(600):
            found = self.program()
            if len(found) == size and not found & others:
                return found
            time.sleep(0.1)
        self.fail(f"there are {found}, not {size} others than {others}")

    def test_gdb_that_starts_again_and_gdb_that_is_killed(self):
        """Workers of a loader never learn that their parent is gone: all that they ask of it is served."""
        if shutil.which("gdb") is None:
            self.skipTest("gdb is not installed")
        self.checked(self.record_single(sys.executable, "-c", WORKERS, self.dir))
        self.temporary = self.dir / "tmp"
        self.temporary.mkdir()
        for how in "quit", "kill":
            with self.subTest(how=how):
                process = self.start([harness.DEJA, "replay", self.trace_path(), "--gdb"], env={"TMPDIR": self.temporary},
                                     stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
                process.stdin.write(b"break sync\n")
                found = frozenset()
                for _ in range(2):
                    process.stdin.write(b"run\n")
                    found = self.await_program(3, found)  # the program and its two workers
                process.stdin.write(b"kill\n")
                self.await_program(0)
                process.stdin.write(b"run\n")
                self.await_program(3)
                if how == "quit":
                    process.stdin.close()
                else:
                    guardian, = children_of(process.pid)
                    worker, = children_of(guardian)
                    gdb = next(pid for pid in children_of(worker) if "deja_gdb" in command_lines()[pid])
                    os.kill(gdb, signal.SIGKILL)
                self.assertEqual(process.wait(timeout=harness.DEFAULT_TIMEOUT), 0 if how == "quit" else 128 + signal.SIGKILL)
                process.stdout.close()
                self.assertNothingIsLeft()
                self.assertEqual(self.program(), set())


if __name__ == "__main__":
    harness.main()
