"""A rank's children die: what they had done by then, and when their parent hears of it, is as in the recording."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
PROGRAMS = Path(__file__).resolve().parents[2] / "apps" / "python"
PROGRAM = PROGRAMS / "dying_workers.py"


KILLS_A_DEAD_CHILD = """
import os, signal, sys, time
child = os.fork()
if child == 0:
    time.sleep(4)
    os._exit(5)
print(child, flush=True)
sys.stdin.readline()
os.kill(child, signal.Signals[sys.argv[1]])
print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


TELLS_A_CHILD_THAT_HANDLES_IT = """
import os, signal, time
asks, asked = os.pipe()
child = os.fork()
if child == 0:
    sum(range(0))
    signal.signal(signal.SIGUSR1, lambda *_: os.write(asked, os.urandom(4)))
    while True:
        time.sleep(0.1)
        if os.path.exists("told"):
            os._exit(3)
time.sleep(0.5)
os.kill(child, signal.SIGUSR1)
print(os.read(asks, 4).hex())
open("told", "w").close()
print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


KILLS_A_CHILD_THAT_WOULD_END = """
import os, signal, time
asks, asked = os.pipe()
child = os.fork()
if child == 0:
    os.write(asked, os.urandom(4))
    time.sleep(0.3)
    os._exit(5)
print(os.read(asks, 4).hex())
sum(range(0))
os.kill(child, signal.SIGUSR1)
print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


TAKES_A_CONNECTION_AND_DIES = """
import ctypes, os, platform, socket, sys, tempfile, threading
ACCEPT4 = {"x86_64": 288, "aarch64": 242}[platform.machine()]
TAKES = {
    "takes": lambda: listener.accept()[0].recv(9),
    "unseen": lambda: ctypes.CDLL(None).syscall(ACCEPT4, listener.fileno(), None, None, 0),
}
listener = socket.socket(socket.AF_UNIX)
listener.bind(tempfile.mkdtemp() + "/s")
listener.listen()
name = listener.getsockname()
server = os.fork()
if server == 0:
    if sys.argv[1:]:
        threading.Thread(target=TAKES[sys.argv[1]], daemon=True).start()
    sys.stdin.readline()
    os._exit(7)
listener.close()
sum(range(20000000))
link = socket.socket(socket.AF_UNIX)
link.connect(name)
print("connected", flush=True)
try:
    print(link.recv(9))
except OSError as error:
    print(type(error).__name__)
print(os.waitstatus_to_exitcode(os.waitpid(server, 0)[1]))
"""


TELLS_BY_THE_CONNECTION_OF_ITS_PARENT = """
import os, select, socket, tempfile, threading
name = tempfile.mkdtemp() + "/s"
listens, says = os.pipe()
server = os.fork()
if server == 0:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
    os.write(says, b"1")
    link = listener.accept()[0]
    while asked := link.recv(99):
        if b"ask" in asked:
            link.sendall(b"answer")
    os._exit(0)
os.read(listens, 1)
link = socket.socket(socket.AF_UNIX)
link.connect(name)
reads, writes = os.pipe()
child = os.fork()
if child == 0:
    teller = threading.Thread(target=link.sendall, args=(b"tell",))
    teller.start()
    teller.join()
    link.sendall(b"ask")
    print(link.recv(99), flush=True)
    os._exit(3)
os.close(writes)
poll = select.poll()
poll.register(reads)
print(len(poll.poll()), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
link.close()
print(os.waitstatus_to_exitcode(os.waitpid(server, 0)[1]))
"""


KILLS_WHEN_IT_IS_TOLD = """
import os, signal, sys
child = os.fork()
if child == 0:
    for number in range(5):
        sum(range(300000))
        print(number, os.urandom(4).hex(), flush=True)
    sum(range(1000000))
    print("ready", flush=True)
    while True:
        signal.pause()
sys.stdin.readline()
os.kill(child, signal.SIGTERM)
print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


NEEDS_A_CHILD_LATE = """
import os, signal
asks, asked = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.urandom(4)
    while os.read(asks[0], 1):
        os.write(asked[1], b"x")
os.close(asked[1])
for _ in range(1500):
    sum(range(100000))
os.write(asks[1], b"?")
print(os.read(asked[0], 1))
os.kill(child, signal.SIGKILL)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


SERVES_WHILE_ANOTHER_DIES = """
import os, signal, socket, tempfile
listener = socket.socket(socket.AF_UNIX)
listener.bind(tempfile.mkdtemp() + "/s")
listener.listen()
server = os.fork()
if server == 0:
    taken, _ = listener.accept()
    os.urandom(4)
    taken.sendall(b"hello")
    taken.sendall(taken.recv(9))
    taken.recv(9)
    signal.pause()
asks = os.pipe()
other = os.fork()
if other == 0:
    os.read(asks[0], 1)
    os.urandom(4)
    print(os.getpid(), flush=True)
    signal.pause()
link = socket.socket(socket.AF_UNIX)
link.connect(listener.getsockname())
print(link.recv(9), flush=True)
os.write(asks[1], b"?")
while os.waitid(os.P_PID, other, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
    pass
link.sendall(b"are you?")
print(link.recv(9), flush=True)
link.sendall(b"yes")
os.kill(server, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(server, 0)[1]))
"""


# Where the file FLAG is there, the child is stopped, so that it finds the signal before the message.
ENDS_IN_A_HANDLER = """
import ctypes, multiprocessing, os, signal, sys, time

def child(receiving, ready):
    libc = ctypes.CDLL(None)
    libc.signal(ctypes.c_int(signal.SIGTERM), ctypes.cast(libc._exit, ctypes.c_void_p))
    ready.send("ready")
    if receiving.poll(60):
        print("child got", receiving.recv(), flush=True)

context = multiprocessing.get_context("fork")
receiving, sending = context.Pipe(False)
waits, ready = context.Pipe(False)
process = context.Process(target=child, args=(receiving, ready))
process.start()
print(waits.recv(), flush=True)
time.sleep(0.3)
is_stopped = os.access(sys.argv[1], os.F_OK)
if is_stopped:
    os.kill(process.pid, signal.SIGSTOP)
sending.send("message")
process.terminate()
if is_stopped:
    os.kill(process.pid, signal.SIGCONT)
process.join()
print("ended with", process.exitcode, flush=True)
"""


# Without the file FLAG the child computes for some seconds.
ASKS_OFTEN = """
import os, sys, time
child = os.fork()
if child == 0:
    if not os.access(sys.argv[1], os.F_OK):
        sum(range(200_000_000))
    os._exit(3)
asked = 1
while os.waitpid(child, os.WNOHANG)[0] == 0:
    asked += 1
    time.sleep(0.01)
print("asked", asked, "times", flush=True)
"""


# The interpreter writes to a descriptor for each signal, as asyncio and multiprocessing's fork server want.
THREE_DEATHS = """
import os, signal, socket, time
woken, wakes = socket.socketpair()
wakes.setblocking(False)
signal.set_wakeup_fd(wakes.fileno())
number, deaths = 0, []

def ended(*_):
    pid = 1
    while pid and len(deaths) < 3:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if pid:
            deaths.append(number)

signal.signal(signal.SIGCHLD, ended)
for lives in (0.1, 0.2, 0.3):
    if os.fork() == 0:
        time.sleep(lives)
        os._exit(0)
readable, writable = os.pipe()
writer = os.fork()
while writer == 0:
    time.sleep(0.02)
    os.write(writable, b"x")
while len(deaths) < 3:
    number += 1
    if READS:
        os.read(readable, 1)
    else:
        sum(range(20000))
        os.write(1, f"line {number}\\n".encode())
os.kill(writer, signal.SIGKILL)
print("deaths at", *deaths)
"""


# The program at the other end is not recorded, and takes its time.
# Its other thread has a lock as the answer comes, which takes no time in a replay, and gives it back.
# Receives BYTES of the bytes that come.
# Computes for longer than the signal waits for the program's next call in a replay.
class DyingChildren(harness.DejaTest):
    def assertDiesAgain(self, how):
        run = self.checked(self.record_single(sys.executable, PROGRAM, how))
        self.assertIn("batch 1 of worker 1\n", run.stdout)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_a_worker_that_exits(self):
        self.assertDiesAgain("exits")

    def test_a_worker_that_is_killed(self):
        self.assertDiesAgain("killed")

    def test_a_worker_that_crashes(self):
        self.assertDiesAgain("crashes")

    def test_a_worker_that_is_killed_from_outside(self):
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable, PROGRAM,
                              "outside"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = [process.stdout.readline() for _ in range(12)]
        os.kill(int(first[0].split()[1]), signal.SIGKILL)
        rest, errors = process.communicate(timeout=harness.DEFAULT_TIMEOUT)
        printed = "".join(line.decode() if isinstance(line, bytes) else line for line in [*first, rest])
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn(" -9 ", printed)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), printed, str(again))

    def test_one_that_serves_its_parent_while_another_is_killed_from_outside(self):
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c",
                              SERVES_WHILE_ANOTHER_DIES], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = [process.stdout.readline().decode() for _ in range(2)]
        os.kill(int(first[1]), signal.SIGKILL)
        rest, errors = process.communicate(timeout=harness.DEFAULT_TIMEOUT)
        self.assertEqual((process.returncode, rest.decode()), (0, "b'are you?'\n-15\n"), errors)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), "".join(first) + rest.decode(), str(again))

    def test_a_parent_that_asks_whether_it_has_ended(self):
        self.assertDiesAgain("asked")

    def assertDieAgain(self, reads):
        run = self.checked(self.record_single(sys.executable, "-c", f"READS = {reads}\n{THREE_DEATHS}"))
        self.assertIn("deaths at", run.stdout)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_three_whose_signals_wake_the_interpreter(self):
        self.assertDieAgain(reads=False)

    def test_three_that_end_while_their_parent_reads(self):
        self.assertDieAgain(reads=True)

    def test_one_that_its_parent_needs_for_long_before_it_kills_it(self):
        run = self.checked(self.record_single(sys.executable, "-c", NEEDS_A_CHILD_LATE))
        self.assertEqual(run.stdout, "b'x'\n-9\n")
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_one_that_takes_a_connection_and_dies(self):
        """It exits at once in a replay, where what it reads is there."""
        self.assertIsConnected(["takes"], (b"b''\n7\n", b"ConnectionResetError\n7\n"))

    def test_one_that_dies_before_it_is_known_that_it_took_a_connection(self):
        """The kernel had given it the connection, which therefore ends and is not reset."""
        self.assertIsConnected(["unseen"], (b"b''\n7\n",))

    def test_one_that_dies_before_it_takes_a_connection(self):
        """The connection was made, and is reset. On a busy machine the other one may do the same."""
        self.assertIsConnected([], (b"ConnectionResetError\n7\n",))

    def assertIsConnected(self, arguments, ends):
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c",
                              TAKES_A_CONNECTION_AND_DIES, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        connected = process.stdout.readline()
        rest, errors = process.communicate(b"\n", timeout=harness.DEFAULT_TIMEOUT)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn(rest, ends)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout).encode(), connected + rest, str(again))

    def test_one_whose_thread_tells_something_by_the_connection_of_its_parent(self):
        """Its end does not wait for what it has told."""
        run = self.checked(self.record_single(sys.executable, "-c", TELLS_BY_THE_CONNECTION_OF_ITS_PARENT))
        self.assertEqual(run.stdout, "b'answer'\n1 3\n0\n")
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
            self.assertNotIn("nothing moves", again.stderr)

    def test_one_that_has_something_to_do_before_its_parent_kills_it(self):
        """The parent would send the signal at once in a replay, where what it reads is there."""
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c",
                              KILLS_WHEN_IT_IS_TOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = [process.stdout.readline() for _ in range(6)]
        rest, errors = process.communicate(b"\n", timeout=harness.DEFAULT_TIMEOUT)
        self.assertEqual((process.returncode, rest), (0, b"ended with -15\n"), errors)
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout).encode(), b"".join(lines) + rest, str(again))

    def test_one_that_works_for_longer_than_it_did(self):
        """Its parent finds its end after as many questions, however long the last one takes."""
        flag = self.dir / "flag"
        flag.touch()
        run = self.checked(self.record_single(sys.executable, "-c", ASKS_OFTEN, flag))
        flag.unlink()
        again = self.checked(self.replay(0, options=("--on-divergence", "warn")))
        self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_one_that_a_signals_handler_ends_before_it_looks(self):
        """A message that came meanwhile is not looked at."""
        flag = self.dir / "flag"
        flag.touch()
        run = self.checked(self.record_single(sys.executable, "-c", ENDS_IN_A_HANDLER, flag))
        self.assertEqual(run.stdout, f"ready\nended with {signal.SIGTERM:d}\n")
        flag.unlink()
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
            self.assertNotIn("child process", again.stdout.replace("child process replayed", ""))

    def test_one_that_had_ended_when_its_parent_killed_it(self):
        self.assertEndsBeforeThe("SIGTERM")

    def test_one_that_had_ended_when_its_parent_told_it_something(self):
        self.assertEndsBeforeThe("SIGUSR1")

    def test_one_that_would_have_ended_before_the_signal_waits_for_it(self):
        program = self.dir / "kills.py"
        program.write_text(KILLS_A_CHILD_THAT_WOULD_END)
        run = self.checked(self.record_single(sys.executable, program))
        self.assertTrue(run.stdout.endswith(f"ended with {-signal.SIGUSR1:d}\n"), str(run))
        program.write_text(KILLS_A_CHILD_THAT_WOULD_END.replace("range(0)", "range(100_000_000)"))
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_one_whose_handler_comes_later(self):
        program = self.dir / "tells.py"
        program.write_text(TELLS_A_CHILD_THAT_HANDLES_IT)
        run = self.checked(self.record_single(sys.executable, program))
        self.assertTrue(run.stdout.endswith("ended with 3\n"), str(run))
        program.write_text(TELLS_A_CHILD_THAT_HANDLES_IT.replace("range(0)", "range(200_000_000)"))
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def assertEndsBeforeThe(self, signal_name):
        """The parent sends the signal sooner in a replay, where what it reads is there at once."""
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c",
                              KILLS_A_DEAD_CHILD, signal_name],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child = int(process.stdout.readline())
        state = Path(f"/proc/{child}/stat")
        until = time.monotonic() + harness.DEFAULT_TIMEOUT
        while state.read_text().rsplit(")", 1)[1].split()[0] != "Z" and time.monotonic() < until:
            time.sleep(0.05)
        _, errors = process.communicate(b"\n", timeout=harness.DEFAULT_TIMEOUT)
        self.assertEqual(process.returncode, 0, errors)
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout).splitlines(), [str(child), "ended with 5"], str(again))
        self.assertNotIn("ended with signal", again.stdout + again.stderr)


if __name__ == "__main__":
    harness.main()
