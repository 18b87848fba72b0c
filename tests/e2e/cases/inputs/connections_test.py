"""Connections of a rank: what came in on sockets, pipes and standard input is there in a replay, and no peer is asked.

Every case records a program whose peers answer with random bytes, in random pieces. It replays it DEJA_REPLAYS times
(3 if it is not set) without peers and, where the kernel allows it, without a network.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APPS = Path(__file__).resolve().parents[2] / "apps" / "connections"
REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))


def without_network():
    """A prefix for commands that must do without any network; empty where that cannot be had."""
    done = subprocess.run(["unshare", "-n", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ["unshare", "-n"] if done.returncode == 0 else []


class ConnectionTest(harness.DejaTest):
    def peer(self, *arguments):
        """Starts a peer; what it prints first: its port or path."""
        process = self.start([sys.executable, APPS / "peers.py", *arguments])
        self.addCleanup(self.end, process)
        return process.stdout.readline().decode().strip()

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def record_single(self, *command, code=0, **kwargs):
        return self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", *command, **kwargs), code)

    def replayed(self, *options, code=0, command=(), **kwargs):
        return self.checked(self.command([*without_network(), harness.DEJA, "replay", self.trace_path(), "--rank", 0,
                                          *options, *(["--", *command] if command else [])], **kwargs), code)

    def assertReplays(self, run, times=REPLAYS):
        self.assertVerifies()
        for _ in range(times):
            again = self.replayed()
            self.assertEqual("".join(again.stdout.splitlines(True)[:-1]), run.stdout, str(again))
            self.assertIn("the same as recorded", again.stdout)


class Family(ConnectionTest):
    def test_processes_of_the_rank_talk_over_unix_sockets(self):
        self.assertReplays(self.record_single(sys.executable, APPS / "family.py"))


class Clients(ConnectionTest):
    def check(self, way, peer):
        where = self.peer(*peer) if peer else "5555"
        run = self.record_single(sys.executable, APPS / "clients.py", way, where)
        self.assertGreater(len(run.stdout.splitlines()), 0)
        self.assertReplays(run)

    def test_a_tcp_client(self):
        self.check("raw", ["store"])

    def test_a_unix_client(self):
        self.check("unix", ["unix", self.dir / "socket"])

    def test_a_connection_that_is_reset(self):
        self.check("reset", ["store"])

    def test_a_server_that_refuses_at_first(self):
        self.check("late", ["late"])

    def test_a_socket_that_does_not_block(self):
        self.check("nonblocking", ["store"])

    def test_datagrams(self):
        self.check("udp", ["udp"])

    def test_http(self):
        self.check("http", ["http"])

    def test_asyncio_streams(self):
        self.check("asyncio", ["store"])

    def test_several_threads(self):
        self.check("threads", ["store"])

    def test_a_process_that_talks_to_itself(self):
        self.check("own", None)

    def test_a_process_that_talks_to_itself_by_a_name(self):
        self.check("own_unix", None)

    def test_names_of_machines(self):
        self.check("names", None)

    def test_epoll_in_cpp(self):
        port = self.peer("store")
        self.assertReplays(self.record_single(harness.app("connection_epoll_client"), port))


class Fifos(ConnectionTest):
    def check(self, way, replays=REPLAYS):
        folder = self.dir / "fifos"
        folder.mkdir()
        self.peer("fifos", way, folder)
        run = self.record_single(sys.executable, APPS / "fifos.py", way, folder)
        self.assertGreater(len(run.stdout.splitlines()), 0)
        for name in ("in", "out"):  # the other end is gone, and so is the name
            (folder / name).unlink()
        self.assertReplays(run, replays)
        return run

    def test_bytes_of_another_process(self):
        run = self.check("read")
        self.assertIn("False True True\n", run.stdout)
        self.assertIn("end b''", run.stdout)

    def test_by_stream_and_opened_again(self):
        self.check("lines")

    def test_both_directions(self):
        self.check("talk")

    def test_without_blocking(self):
        self.check("poll")

    def test_one_descriptor_for_both_directions(self):
        self.check("both")

    def test_a_fifo_without_a_reader(self):
        self.assertIn("No such device", self.check("nobody").stdout)

    def test_a_reader_that_goes_away(self):
        self.assertIn("Broken pipe", self.check("broken").stdout)

    def test_a_shell_and_its_commands(self):
        self.check("shell")

    def test_a_command_whose_recording_is_lost_is_named(self):
        self.check("shell", replays=1)
        held = self.dir / "held"
        opened = 0
        for child in sorted(self.trace_path().glob("child-*")):
            with self.subTest(child.name):
                child.rename(held)
                again = self.replay(0)
                held.rename(child)
                opened += len(set(re.findall(r"deja: (child \S+) waits for a process that writes to the FIFO \S+/fifos/in, "
                                             r"which it opens to read", again.stderr)))
        self.assertGreater(opened, 1)

    def test_between_threads_and_processes_of_the_rank(self):
        self.check("own")

    def test_between_processes_of_the_rank_by_a_name_of_others(self):
        self.check("given")

    def test_other_bytes_are_reported(self):
        folder = self.dir / "fifos"
        folder.mkdir()
        self.peer("fifos", "talk", folder)
        script = ("import sys\nwith open('out', 'w') as out, open('in') as file:\n"
                  "    print(sys.argv[1], file=out, flush=True)\n    print(file.readline())\n")
        command = [sys.executable, "-c", script]
        self.record_single(*command, "one", cwd=folder)
        again = self.replayed(command=[*command, "two"], code=harness.EXIT_DIVERGED, cwd=folder)
        self.assertRegex(again.stderr, r"connection 'open \S+/fifos/out to write #1 of thread 0': what the program sends "
                                       r"differs from the recording in bytes 0 to 3")


class Servers(ConnectionTest):
    def free_port(self):
        """A free one that no connection gets by itself: a client could otherwise meet itself there."""
        for port in range(20000 + os.getpid() % 10000, 32000):
            with socket.socket() as made:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    made.bind(("127.0.0.1", port))
                except OSError:
                    continue
                return port
        raise AssertionError("no port below 32000 is free")

    def check(self, way):
        port = self.free_port()
        clients = self.start([sys.executable, APPS / "peers.py", "clients", port])
        self.addCleanup(self.end, clients)
        run = self.record_single(sys.executable, APPS / "servers.py", way, port)
        self.assertEqual(run.stdout.count("client "), 12, run)
        self.assertReplays(run)

    def test_selectors(self):
        self.check("select")

    def test_a_thread_for_each_client(self):
        self.check("threads")

    def test_asyncio(self):
        self.check("asyncio")

    def check_inherited(self, way):
        """A listener that another program has made: it comes as a descriptor."""
        program = ("import os, select, socket, subprocess, sys\n"
                   "def serve(s):\n"
                   "    print(s.family.name, s.type.name, s.getsockname()[0], flush=True)\n"
                   "    for _ in range(3):\n"
                   "        select.select([s], [], [])\n"
                   "        c, who = s.accept()\n"
                   "        print(who[0], who[1], c.recv(100), flush=True)\n"
                   "        c.sendall(b'seen')\n        c.close()\n"
                   "way, fd = sys.argv[1], int(sys.argv[2])\n"
                   "if way == 'fork':\n"
                   "    if os.fork() == 0:\n        serve(socket.socket(fileno=fd))\n        os._exit(0)\n"
                   "    print(os.wait()[1])\n"
                   "elif way == 'exec':\n"
                   "    print(subprocess.run([sys.executable, '-c', sys.argv[3], 'own', str(fd)], pass_fds=(fd,)).returncode)\n"
                   "else:\n    serve(socket.socket(fileno=fd))\n")
        trace = self.trace_path(way + ".deja")
        with socket.create_server(("127.0.0.1", 0)) as server:
            def client():
                for _ in range(3):
                    with socket.create_connection(server.getsockname()) as made:
                        made.sendall(os.urandom(4).hex().encode())
                        made.recv(10)
            thread = threading.Thread(target=client, daemon=True)
            thread.start()
            run = self.checked(self.deja("record", "--single", "--out", trace, "--", sys.executable, "-c", program, way,
                                         server.fileno(), program, pass_fds=(server.fileno(),)))
            thread.join(60)
        self.assertEqual(run.stdout.count("127.0.0.1"), 4, run)
        for _ in range(REPLAYS):
            again = self.checked(self.command([*without_network(), harness.DEJA, "replay", trace]))
            self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_a_listener_that_the_program_was_born_with(self):
        for way in ("own", "fork", "exec"):
            with self.subTest(way):
                self.check_inherited(way)

    def test_a_listener_without_a_connection(self):
        program = ("import select, socket, sys\ns = socket.socket(fileno=int(sys.argv[1]))\n"
                   "print(s.family.name, s.getsockname()[1], s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))\n"
                   "print(select.select([s], [], [], 0.1))\n")
        with socket.create_server(("127.0.0.1", 0)) as server:
            run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c",
                                         program, server.fileno(), pass_fds=(server.fileno(),)))
        self.assertReplays(run)

    def test_options_that_the_program_sets(self):
        """The same question has another answer afterwards, and of another socket. What the kernel makes of a value is
        the recorded kernel's."""
        program = """
import socket
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
NO_DELAY, PORT, SIZE = (socket.IPPROTO_TCP, socket.TCP_NODELAY), (socket.SOL_SOCKET, socket.SO_REUSEPORT), (
    socket.SOL_SOCKET, socket.SO_SNDBUF)
first, second = socket.socket(type=TCP), socket.socket(type=TCP)
told = []
for option, values in ((NO_DELAY, (1, 0, 1)), (PORT, (1,)), (SIZE, (20000, 40000, 100))):
    told.append(first.getsockopt(*option))
    for value in values:
        first.setsockopt(*option, value)
        told += [first.getsockopt(*option), second.getsockopt(*option)]
third = socket.socket(type=UDP)
third.setsockopt(*PORT, 1)
print(told, third.getsockopt(*PORT))
"""
        run = self.checked(self.record_single(sys.executable, "-c", program))
        self.assertRegex(run.stdout, r"^\[0, 1, 0, 0, 0, 1, 0, 0, 1, 0, .*\] 1\n$")
        self.assertReplays(run)


class StandardInput(ConnectionTest):
    """Words in pieces, from a pipe."""
    PROGRAM = "import sys, time\nfor i in range(5):\n    print(f'word{i} of', time.time_ns(), flush=True)\n" \
              "    time.sleep(0.02)\n"

    def check(self, *command):
        source = subprocess.Popen([sys.executable, "-c", self.PROGRAM], stdout=subprocess.PIPE)
        run = self.record_single(*command, stdin=source.stdout)
        source.stdout.close()
        source.wait()
        self.assertTrue(run.stdout)
        self.assertReplays(run)

    def test_read(self):
        self.check(harness.app("connection_input_streams"), "read")

    def test_fgets(self):
        self.check(harness.app("connection_input_streams"), "fgets")

    def test_cin(self):
        self.check(harness.app("connection_input_streams"), "cin")

    def test_scanf(self):
        self.check(harness.app("connection_input_streams"), "scanf")

    def test_getline(self):
        self.check(harness.app("connection_input_streams"), "getline")

    def test_fread(self):
        self.check(harness.app("connection_input_streams"), "fread")

    def test_python(self):
        self.check(sys.executable, "-c", "import sys\nprint(sys.stdin.readline(), sys.stdin.read())")

    def test_a_program_of_the_system(self):
        self.check("sort")

    def test_a_file(self):
        for way in ("read", "fgets", "cin", "seek"):
            with self.subTest(way=way):
                file = self.dir / "input"
                file.write_text("".join(f"word{i} {os.urandom(4).hex()}\n" for i in range(9)))
                with open(file, encoding="utf-8") as source:
                    run = self.checked(self.deja("record", "--single", "--out", self.trace_path(way + ".deja"), "--",
                                                 harness.app("connection_input_streams"), way, stdin=source))
                file.unlink()
                again = self.checked(self.replay(0, trace=way + ".deja"))
                self.assertEqual("".join(again.stdout.splitlines(True)[:-1]), run.stdout)


class Secrets(ConnectionTest):
    def test_values_of_secret_headers_are_not_stored(self):
        read_end, write_end = os.pipe()
        os.write(write_end, b"HTTP/1.1 200 OK\r\nSet-Cookie: session=verysecret1\r\nContent-Length: 4\r\n\r\nbody")
        os.close(write_end)
        run = self.record_single(sys.executable, "-c", "import sys\nprint(sys.stdin.buffer.raw.read(1000))",
                                 stdin=read_end)
        os.close(read_end)
        self.assertIn("verysecret1", run.stdout)
        again = self.replayed()
        self.assertNotIn("verysecret1", again.stdout)
        self.assertEqual(len(again.stdout.splitlines()[0]), len(run.stdout.splitlines()[0]))
        self.assertIn("Content-Length: 4", again.stdout)
        self.assertNotIn(b"verysecret1".hex(), self.deja("show", self.trace_path(), "--json", "--all").stdout)


class Differences(ConnectionTest):
    def test_other_bytes_are_reported_and_swallowed(self):
        port = self.peer("store")
        program = harness.app("connection_epoll_client")
        self.record_single(program, port)
        again = self.replayed(command=[program, port, "gove"], code=harness.EXIT_DIVERGED)
        self.assertRegex(again.stderr, r"deja: connection 'connect 127\.0\.0\.1:\d+ #1 of thread 0': what the program "
                                       r"sends differs from the recording in bytes 0 to 10")
        self.assertIn("exit 0, the same as recorded, but it diverged on the way", again.stdout)

    def test_a_connection_that_was_not_recorded_is_refused(self):
        port = self.peer("store")
        other = self.peer("store")
        self.record_single(sys.executable, APPS / "clients.py", "raw", port)
        again = self.deja("replay", self.trace_path(), "--rank", 0, "--", sys.executable, APPS / "clients.py", "raw",
                          other)
        self.assertIn(f"deja: connecting to 127.0.0.1:{other} was refused", again.stderr)
        self.assertIn("ConnectionRefusedError", again.stderr)

    def test_a_forked_child_goes_on_with_its_parents_connection(self):
        port = self.peer("store")
        script = ("import os, socket, sys\nc = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
                  "c.sendall(b'give\\n')\nprint(c.recv(3), flush=True)\npid = os.fork()\nn = 0\n"
                  "if pid == 0:\n    c.sendall(b'bye\\n')\n    while data := c.recv(1000):\n        n += sum(data)\n"
                  "    print('child', n, flush=True)\n    os._exit(n % 200)\nprint(os.waitpid(pid, 0)[1])\n")
        self.assertReplays(self.record_single(sys.executable, "-c", script, port))

    def test_a_forked_childs_first_call_is_on_its_parents_connection(self):
        port = self.peer("store")
        for way in ("send", "read", "copy", "close"):
            with self.subTest(way):
                run = self.checked(self.deja("record", "--single", "--out", self.trace_path(way + ".deja"), "--",
                                             harness.app("connection_forked_client"), way, port))
                self.assertIn("child ", run.stdout)
                for _ in range(REPLAYS):
                    again = self.checked(self.replay(0, trace=way + ".deja"))
                    self.assertEqual(harness.without_report(again.stdout), run.stdout)
                    self.assertNotIn("differs", again.stderr)

    def test_a_program_that_a_child_becomes_goes_on_with_its_parents_connection(self):
        child = ("import socket, sys\nwith socket.socket(fileno=int(sys.argv[1])) as c:\n    print(c.family.name)\n"
                 "    c.sendall(b'bye\\n')\n    data = c.makefile('rb').read()\nprint(len(data), sum(data), flush=True)\n")
        for kind, where in (("store", []), ("unix", [self.dir / "socket"])):
            with self.subTest(kind):
                port = self.peer(kind, *where)
                script = ("import socket, subprocess, sys\n"
                          "c = socket.socket(socket.AF_INET if sys.argv[1].isdigit() else socket.AF_UNIX)\n"
                          "c.connect(('127.0.0.1', int(sys.argv[1])) if sys.argv[1].isdigit() else sys.argv[1])\n"
                          "pair = socket.socketpair()\npair[0].sendall(b'x')\n"
                          "subprocess.run([sys.executable, '-c', sys.argv[2], str(c.fileno())], pass_fds=(c.fileno(),))\n"
                          "more = 'import os, sys; print(os.read(int(sys.argv[1]), 1))'\n"
                          "subprocess.run([sys.executable, '-c', more, str(pair[1].fileno())], "
                          "pass_fds=(pair[1].fileno(),))\n")
                run = self.checked(self.deja("record", "--single", "--out", self.trace_path(kind + ".deja"), "--",
                                             sys.executable, "-c", script, port, child))
                for _ in range(REPLAYS):
                    again = self.checked(self.replay(0, trace=kind + ".deja"))
                    self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_a_program_finds_what_it_inherits_at_other_numbers(self):
        for more in (True, False):
            with self.subTest(more_descriptors=more):
                port, flag, trace = self.peer("store"), self.dir / f"flag-{more}", self.trace_path(f"{more}.deja")
                if more:
                    flag.touch()
                run = self.checked(self.deja("record", "--single", "--out", trace, "--", sys.executable,
                                             APPS / "heirs.py", port, flag, self.dir / f"listener-{more}"))
                self.assertIn("child ended with 0", run.stdout)
                flag.unlink() if more else flag.touch()
                for _ in range(REPLAYS):
                    again = self.checked(self.replay(0, trace=trace))
                    self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_a_killed_rank_replays_to_where_it_waited(self):
        port = self.peer("store")
        script = ("import socket, sys\nc = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
                  "f = c.makefile('rb')\nfor i in range(3):\n    c.sendall(b'give\\n')\n    n = int(f.readline())\n"
                  "    print(n, sum(f.read(n)), flush=True)\nc.recv(1)\n")
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable,
                              "-c", script, port])
        lines = [process.stdout.readline().decode() for _ in range(3)]
        time.sleep(0.2)
        rank = subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
        os.kill(int(rank[0]), signal.SIGKILL)
        self.finish(process)
        for _ in range(REPLAYS):
            again = self.replayed()
            self.assertEqual(again.stdout.splitlines(True)[:3], lines)
            self.assertIn("the end of the recording is reached", again.stdout)


if __name__ == "__main__":
    harness.main()
