"""A replayed program tries to change what is outside, in every way that there is, and nothing changes."""
import ctypes
import os
import signal
import socket
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APP = harness.BUILD / "tests" / "fence" / "outside_attempts"
STATIC = harness.BUILD / "tests" / "fence" / "outside_attempts_static"
WAYS = "libc,syscall,instruction,child,static"
INHERITED = 99  # of outside_attempts; none that this process has
MNT_DETACH = 2
IPC_CREAT, IPC_RMID, IPC_STAT, SETVAL, GETVAL = 0o1000, 0, 2, 16, 12
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p


class World:
    """What could be changed: files, a process, sockets that listen, and objects that have numbers or names."""

    def __init__(self, test):
        self.folder = test.dir / "world"
        self.folder.mkdir()
        for name in "abcdefghi":
            (self.folder / name).write_text(f"{name} as it was\n")
        for name in "user.was", "user.was2":
            try:
                os.setxattr(self.folder / "e", name, b"x")
            except OSError:
                pass  # a file system without them
        self.process = test.start(["sleep", "300"])
        test.addCleanup(self.end)
        self.tcp = self.listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.udp = self.listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self.stream = self.listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "stream"))
        self.datagram = self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.folder / "datagram"))
        self.key = 0x5A000000 | os.getpid() & 0xFFFF
        self.memory = libc.shmget(self.key, 4096, IPC_CREAT | 0o600)
        self.queue = libc.msgget(self.key, IPC_CREAT | 0o600)
        self.semaphore = libc.semget(self.key, 1, IPC_CREAT | 0o600)
        self.at = libc.shmat(self.memory, None, 0)
        self.mq = libc.mq_open(f"/deja-{self.key}".encode(), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600, None)

    @staticmethod
    def listen(family, kind, address):
        made = socket.socket(family, kind)
        made.bind(address)
        made.setblocking(False)
        if kind == socket.SOCK_STREAM:
            made.listen(64)
        return made

    def end(self):
        libc.umount2(str(self.folder).encode(), MNT_DETACH)  # of attempts without Deja
        self.process.kill()
        self.process.communicate()
        for one in self.tcp, self.udp, self.stream, self.datagram:
            one.close()
        libc.shmctl(self.memory, IPC_RMID, None)
        libc.msgctl(self.queue, IPC_RMID, None)
        libc.semctl(self.semaphore, 0, IPC_RMID)
        libc.mq_unlink(f"/deja-{self.key}".encode())

    def arguments(self, ways):
        return [ways, self.folder, self.process.pid, self.tcp.getsockname()[1], self.udp.getsockname()[1], self.key, STATIC]

    def files(self):
        """Every file with all that it says of itself but the time of the last reading."""
        found = {}
        for path in [self.folder, *sorted(self.folder.rglob("*"))]:
            info = path.lstat()
            attributes = [] if path.is_symlink() else sorted(os.listxattr(path))
            content = path.read_bytes() if path.is_file() else None
            found[path.name] = (info.st_mode, info.st_uid, info.st_gid, info.st_nlink, info.st_mtime_ns, info.st_ctime_ns,
                                attributes, content)
        return found

    def process_state(self):
        """The sleeping process: whether it is there, and what others can set of it."""
        pid = self.process.pid
        if self.process.poll() is not None:
            return "gone"
        limits = Path(f"/proc/{pid}/limits").read_text()
        sched = os.sched_getscheduler(pid), sorted(os.sched_getaffinity(pid)), os.getpriority(os.PRIO_PROCESS, pid)
        return limits, sched, libc.syscall(252, 1, pid), "TracerPid:\t0" in Path(f"/proc/{pid}/status").read_text()

    def came_in(self):
        """What has arrived at the sockets."""
        came = []
        for one in self.tcp, self.stream:
            try:
                one.accept()[0].close()
                came.append(one.family)
            except BlockingIOError:
                pass
        for one in self.udp, self.datagram:
            try:
                came.append(one.recv(100))
            except BlockingIOError:
                pass
        return came

    def objects(self):
        """The contents of what has a key or a name."""
        state = ctypes.create_string_buffer(256)
        libc.msgctl(self.queue, IPC_STAT, state)
        messages = struct.unpack_from("Q", state, 80)[0]
        key_names = [line.split()[8] for line in Path("/proc/keys").read_text().splitlines() if f"deja-{self.key}" in line]
        waiting = ctypes.create_string_buffer(64)
        libc.mq_getattr(self.mq, waiting)
        return (ctypes.string_at(self.at, 1), messages, libc.semctl(self.semaphore, 0, GETVAL),
                struct.unpack_from("q", waiting, 24)[0], key_names, Path("/proc/self/mountinfo").read_text())

    def state(self):
        return {"files": self.files(), "process": self.process_state(), "sockets": self.came_in(), "objects": self.objects()}


class Outside(harness.DejaTest):
    def recorded(self):
        world = World(self)
        self.checked(self.record_single(APP, *world.arguments("nothing")))
        return world

    def test_the_attempts_would_change_everything(self):
        """Without Deja, so that the other test means something. Not what needs root, nor the process."""
        world = World(self)
        before = world.state()
        run = self.checked(self.command([APP, *map(str, world.arguments("syscall"))]))
        after = world.state()
        self.assertGreater(run.stdout.count(": done"), 30, run.stdout)
        for part, was in before.items():
            self.assertNotEqual(after[part], was, part)

    def test_nothing_gets_out_of_a_replay(self):
        world = self.recorded()
        before = world.state()
        inherited = os.open(world.folder / "a", os.O_WRONLY)
        self.addCleanup(os.close, inherited)
        os.dup2(inherited, INHERITED)
        self.addCleanup(os.close, INHERITED)
        with open(self.dir / "output", "wb") as output:
            replay = self.finish(self.start(
                [harness.DEJA, "replay", self.trace_path(), "--on-divergence", "warn", "--", APP, *world.arguments(WAYS)],
                stdout=output, pass_fds=(INHERITED,)))
        text = (self.dir / "output").read_text()
        attempts = [line.split(": ") for line in text.splitlines() if line.count(": ") == 2]
        by_way = {}
        for way, name, _ in attempts:
            by_way.setdefault(way, set()).add(name)
        names = by_way["libc"]
        self.assertGreater(len(names), 50, f"{text}\n{replay}")
        self.assertEqual({way: made == names for way, made in by_way.items()},
                         {"libc": True, "syscall": True, "instruction": True, "child": True}, f"{text}\n{replay}")
        # The program without a C library made as many again.
        self.assertEqual(len(attempts), 5 * len(names), f"{text}\n{replay}")
        after = world.state()
        for part, was in before.items():
            self.assertEqual(after[part], was, f"{part}\n{text}\n{replay}")

    def test_its_own_files_and_objects_it_may_change(self):
        """What the fence lets through: files in the scratch folder, and numbers that only the replay has."""
        script = self.dir / "own.sh"
        script.write_text("set -e\nmkdir own\necho x > own/file\nchmod 600 own/file\ntouch -d @7 own/file\n"
                          "stat -c '%a %Y' own/file\nln -s file own/link\nchown -h $(id -u) own/link\nrm -r own\n")
        work = self.dir / "work"
        work.mkdir()
        run = self.checked(self.record_single("bash", script, cwd=work))
        self.assertEqual(run.stdout, "600 7\n")
        replay = self.checked(self.deja("replay", self.trace_path(), cwd=work))
        self.assertEqual(harness.without_report(replay.stdout), run.stdout)
        self.assertEqual(os.listdir(work), [])

    def test_the_file_of_its_output_keeps_its_contents(self):
        """The output goes to a file that has something in it: the program cannot take that away."""
        program = self.dir / "output.py"
        program.write_text("import os, sys, fcntl\n"
                           "print('said', flush=True)\n"
                           "if len(sys.argv) > 1:\n"
                           "    for act in (lambda: os.ftruncate(1, 0), lambda: fcntl.fcntl(1, fcntl.F_SETFL, 0),\n"
                           "                lambda: os.pwrite(1, b'over', 0), lambda: os.fchmod(1, 0)):\n"
                           "        try:\n            act()\n        except OSError:\n            pass\n")
        self.checked(self.record_single(sys.executable, program))
        log = self.dir / "log"
        log.write_text("first\n")
        with open(log, "r+b") as out:
            out.seek(0, 2)
            replay = self.finish(self.start([harness.DEJA, "replay", self.trace_path(), "--on-divergence", "warn", "--",
                                             sys.executable, program, "attack"], stdout=out))
        self.assertTrue(log.read_text().startswith("first\nsaid\n"), f"{log.read_text()}\n{replay}")
        self.assertNotEqual(log.stat().st_mode & 0o777, 0)


if __name__ == "__main__":
    harness.main()
