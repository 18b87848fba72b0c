"""deja top on a job that runs: who waits for whom, in a pipe, as JSON and on a terminal that it gives back."""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

LONG_MS = 60_000


class Terminal:
    """deja top on a terminal of its own."""

    def __init__(self, case, lines, columns, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(case.dir)
            os.execve(str(harness.DEJA), [str(harness.DEJA), "top", *map(str, words)],
                      {**case.environment(None), "TERM": "xterm"})
        self.before = termios.tcgetattr(self.fd)
        self.resize(lines, columns)
        self.seen = ""

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, wanted, since=0, timeout=30):
        """Reads until `wanted` is there, from position `since` on; returns the position after it."""
        end = time.monotonic() + timeout
        while wanted not in self.seen[since:]:
            if time.monotonic() > end:
                raise AssertionError(f"no {wanted!r} in {self.seen[since:]!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:  # the other side is closed
                    if wanted not in self.seen[since:]:
                        raise AssertionError(f"ended without {wanted!r}: {self.seen[since:]!r}") from None
        return self.seen.index(wanted, since) + len(wanted)

    def type(self, keys):
        os.write(self.fd, keys)

    def take(self, timeout):
        """Reads once; False: there was nothing, or the other side is closed."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            read = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += read.decode(errors="replace")
        return bool(read)

    def end(self):
        """The exit status; the terminal is as it was."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            self.take(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                while self.take(0):  # what it wrote between the last reading and its end
                    pass
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"deja top does not end: {self.seen!r}")


class Top(harness.DejaTest):
    def start_job(self, late_ms=LONG_MS):
        """A job whose rank 1 sleeps in step 5; the others are in that step's all-reduce."""
        job = self.start(self.record_argv("stepper", ["--steps=8", "--stop=5", f"--stop-ms={late_ms}", "--calls=1"], n=3))
        self.addCleanup(self.end_job, job)
        for _ in range(200):
            if len(self.rank_folders()) == 3 and self.view().get("waits"):
                return job
            time.sleep(0.1)
        self.fail("the job never waits")

    def end_job(self, job):
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()

    def view(self):
        run = self.deja("top", self.trace_path(), "--json", "--count", 1)
        return json.loads(run.stdout) if run.code == 0 else {}

    def test_a_running_job(self):
        job = self.start_job()
        view = self.view()
        self.assertEqual(view["running"], 3)
        self.assertEqual(view["world_size"], 3)
        wait = view["waits"][0]
        self.assertEqual((wait["waiting"], wait["for"]), ([0, 2], [1]))
        self.assertEqual(wait["operation"], "AllReduce 5 of comm 0")
        self.assertGreater(wait["since_ns"], 0)
        self.assertEqual([rank["step"] for rank in view["ranks"]], [5, 5, 5])
        self.assertEqual([rank["operations"] for rank in view["ranks"]], [5, 4, 5])
        self.assertEqual(view["ranks"][0]["bytes"], 5 * 16384 * 4)
        self.assertEqual(view["ranks"][1]["doing"], "after AllReduce #4 of comm 0")

        lines = self.checked(self.deja("top", self.trace_path(), "--interval", 0.1, "--count", 2)).stdout.splitlines()
        self.assertEqual(sum("3 of 3 ranks run, step 5" in line for line in lines), 2, lines)
        self.assertTrue(any(line.startswith("ranks 0,2 wait for rank 1 in AllReduce 5 of comm 0") for line in lines), lines)

        self.terminal(job)

    def terminal(self, job):
        """A page that follows the terminal's size; q, Ctrl-C and SIGTERM give the terminal back."""
        for end in (b"q", b"\x03", signal.SIGTERM):
            top = Terminal(self, 24, 100, self.trace_path(), "--interval", 0.2)
            at = top.wait_for("ranks 0,2 wait for rank 1")
            self.assertIn("\x1b[?1049h", top.seen[:at])
            at = top.wait_for("     2 running", at)
            # A line for the rows, one for the keys: the rest is above.
            top.resize(5, 80)
            at = top.wait_for("ranks 0-0 of 3", at)
            top.type(b"\x1b[B")
            top.wait_for("ranks 1-1 of 3", at)
            if isinstance(end, bytes):
                top.type(end)
            else:
                os.kill(top.pid, end)
            self.assertEqual(top.end(), 0, top.seen)
            last = top.seen.rindex("\x1b[?1049l")
            self.assertGreater(top.seen.rindex("\x1b[?25h"), top.seen.rindex("\x1b[?25l"))
            # What was seen last stays on the terminal.
            self.assertIn("ranks 0,2 wait for rank 1", top.seen[last:])
            self.assertEqual(termios.tcgetattr(top.fd), top.before)
            os.close(top.fd)
        self.assertIsNone(job.poll())

    def test_a_job_that_ends_ends_it(self):
        self.start_job(late_ms=1500)
        run = self.checked(self.deja("top", self.trace_path(), "--interval", 0.2))
        self.assertIn("0 of 3 ranks run, step 8", run.stdout.splitlines()[-1])
        view = self.view()
        self.assertEqual([rank["state"] for rank in view["ranks"]], ["exit 0"] * 3)
        self.assertEqual(view["waits"], [])

    def test_no_trace(self):
        run = self.deja("top", self.dir / "none.deja")
        self.assertEqual(run.code, 1)
        self.assertIn("none.deja", run.stderr)
        (self.dir / "empty.deja").mkdir()
        run = self.deja("top", self.dir / "empty.deja")
        self.assertEqual(run.code, 1)
        self.assertIn("no rank in it yet", run.stderr)


if __name__ == "__main__":
    harness.main()
