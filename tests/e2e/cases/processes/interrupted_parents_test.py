"""SIGCHLD reaches a program of Python where it did, whatever its first thread was doing."""
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
PROGRAMS = Path(__file__).resolve().parents[2] / "apps" / "python"


HEARS_OF_IT_WHILE_IT_TALKS = """
import os, signal, socket, sys, time
number = 0
signal.signal(signal.SIGCHLD, lambda *_: print("told at", number, flush=True))
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
if os.fork() == 0:
    time.sleep(0.2)
    os._exit(3)
while number < 12:
    number += 1
    link.sendall(b"question")
    assert link.recv(99)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


KILLS_ITSELF_WITH_A_LOCK = """
import multiprocessing, os, signal, socket, sys, threading
lock = multiprocessing.Lock()
child = os.fork()
if child == 0:
    def work():
        with lock:
            for _ in range(1000000):
                pass
        threading.Event().wait()
    link = socket.socket(socket.AF_UNIX)
    link.connect(sys.argv[1])
    threading.Thread(target=work, daemon=True).start()
    link.sendall(b"question")
    link.recv(99)
    os.kill(os.getpid(), signal.SIGKILL)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
with lock:
    print("taken")
"""


HEARS_OF_IT_WHILE_IT_RECEIVES = """
import os, signal, socket, sys, time
BYTES = 12
signal.signal(signal.SIGCHLD, lambda *_: print("told", flush=True))
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
if os.fork() == 0:
    time.sleep(0.2)
    os._exit(3)
link.sendall(b"question")
received = 0
while received < BYTES:
    time.sleep(0.05)
    received += len(link.recv(1))
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


HEARS_OF_IT_AFTER_IT_HAS_CONNECTED = """
import multiprocessing, os, signal, socket, tempfile, time
state = "computing"
signal.signal(signal.SIGCHLD, lambda *_: print("told:", state, flush=True))
listener = socket.socket(socket.AF_UNIX)
listener.bind(tempfile.mkdtemp() + "/s")
listener.listen()
waits, ends = os.pipe()
dies = os.fork()
if dies == 0:
    os.read(waits, 1)
    os._exit(3)
serves = os.fork()
if serves == 0:
    taken = listener.accept()[0]
    os.write(ends, b"!")
    time.sleep(0.5)
    taken.sendall(b"hello")
    signal.pause()
multiprocessing.get_context("fork").Semaphore(0).release()
sum(range(80_000_000))
link = socket.socket(socket.AF_UNIX)
link.connect(listener.getsockname())
state = "connected"
print(link.recv(9))
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
os.kill(serves, signal.SIGKILL)
print(os.waitstatus_to_exitcode(os.waitpid(dies, 0)[1]))
"""


class InterruptedParents(harness.DejaTest):
    """The handler raises where it did, whatever the parent was doing."""

    def assertDiesThere(self, how, printed, code=0):
        run = self.record_single(sys.executable, PROGRAMS / "interrupted_parent.py", how)
        self.assertEqual(run.code, code, str(run))
        self.assertRegex(run.stdout, printed)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
        return run

    def test_that_prints(self):
        self.assertDiesThere("prints", r"line 0\n(line \d+\n)*died with 7 after \d+\n$")

    def test_that_starts_programs(self):
        self.assertDiesThere("starts", r"line 0\n(line \d+\n)*died with 7 after \d+\n$")

    def test_that_waits_for_another_child(self):
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable,
                              PROGRAMS / "interrupted_parent.py", "reaps"], stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"died with 7 after 0\n")
        _, errors = process.communicate(b"\n", timeout=harness.DEFAULT_TIMEOUT)
        self.assertEqual(process.returncode, 0, errors)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), "died with 7 after 0\n", str(again))

    def test_that_computes(self):
        self.assertDiesThere("computes", r"^died with 7 after some\n$")

    def test_that_waits(self):
        self.assertDiesThere("waits", r"^died with 7 after \d+\n$")

    def test_that_sleeps(self):
        self.assertDiesThere("sleeps", r"^died with 7 after \d+\n$")

    def start_server(self, answer, pause_s=0):
        """A program that is not recorded at the socket "s", for one connection. Its thread."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.dir / "s"))
        listener.listen()

        def serve():
            with listener.accept()[0] as link:
                while link.recv(99):
                    time.sleep(pause_s)
                    link.sendall(answer)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        return server

    def test_that_talks_to_a_program_that_is_not_recorded(self):
        server = self.start_server(b"answer", pause_s=0.05)
        run = self.assertPrintsTheSameAgain(sys.executable, "-c", HEARS_OF_IT_WHILE_IT_TALKS, self.dir / "s",
                                            replays=REPLAYS)
        self.assertRegex(run.stdout, r"^told at \d+\n3\n$")
        server.join(harness.DEFAULT_TIMEOUT)

    def test_that_does_not_hear_of_it_has_diverged(self):
        server = self.start_server(b"twelve bytes")
        program = self.dir / "receives.py"
        program.write_text(HEARS_OF_IT_WHILE_IT_RECEIVES)
        run = self.record_single(sys.executable, program, self.dir / "s")
        self.assertEqual(run.stdout, "told\n3\n", str(run))
        server.join(harness.DEFAULT_TIMEOUT)
        program.write_text(HEARS_OF_IT_WHILE_IT_RECEIVES.replace("BYTES = 12", "BYTES = 1"))
        again = self.replay(0)
        self.assertEqual(again.code, 4, str(again))
        self.assertIn("exit 0, 1 recorded SIGCHLD not delivered; the recorded run: exit 0", again.stdout)

    def test_of_one_whose_thread_gives_a_lock_back(self):
        server = self.start_server(b"answer", pause_s=1)
        run = self.assertPrintsTheSameAgain(sys.executable, "-c", KILLS_ITSELF_WITH_A_LOCK, self.dir / "s", replays=REPLAYS)
        self.assertEqual(run.stdout, "-9\ntaken\n")
        server.join(harness.DEFAULT_TIMEOUT)

    def test_that_connects_to_the_child_first(self):
        run = self.assertPrintsTheSameAgain(sys.executable, "-c", HEARS_OF_IT_AFTER_IT_HAS_CONNECTED, replays=1)
        self.assertEqual(run.stdout, "told: connected\nb'hello'\n3\n")

    def test_that_has_ended_by_an_exception(self):
        run = self.assertDiesThere("ends", r"text 0\n(text \d+\n)*$", code=1)
        self.assertIn("Slow: slow", run.stderr)
        self.assertIn("Died: 7", run.stderr)
        self.assertNotIn("is not noted", run.stderr)


if __name__ == "__main__":
    harness.main()
