"""What a program may notice of Deja: its environment, filters and limits, allocators and tools beside it, recordings
inside recordings.

Each program prints the same without Deja, recorded and replayed. DEJA_REPLAYS says how often each recording is
replayed (default 2). DEJA_ALLOCATORS=PATH[:PATH…] names further allocators to preload, which have no package:
snmalloc's, hardened_malloc's.
"""
import os
import re
import shutil
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

PROGRAMS = harness.BUILD / "tests" / "notice"
LIBRARIES = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
REPLAYS = int(os.environ.get("DEJA_REPLAYS", "2"))
IS_ROOT = os.geteuid() == 0


class NoticeTest(harness.DejaTest):
    def recorded(self, argv, trace="run.deja", options=()):
        return [harness.DEJA, "record", "--single", "--out", self.trace_path(trace), *options, "--", *argv]

    def complaints(self, run):
        return [line for line in run.deja_lines() if "not recorded" in line]

    def assertSame(self, argv, prefix=(), complaints=0, replays=REPLAYS, change=lambda text: text, replay_options=()):
        """Without Deja, recorded and replayed; `notes`: how often the recording says that something is not recorded."""
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        plain = self.command([*prefix, *argv])
        run = self.command([*prefix, *self.recorded(argv)])
        self.assertEqual((run.code, change(run.stdout)), (plain.code, change(plain.stdout)), f"\n{plain}\n{run}")
        self.assertEqual([line for line in plain.stderr.splitlines() if line not in run.stderr.splitlines()], [], f"\n{plain}\n{run}")
        self.assertEqual(len(self.complaints(run)), complaints, str(run))
        for _ in range(replays):
            again = self.checked(self.replay(0, options=replay_options))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
        return run


class Environment(NoticeTest):
    OWN = ["env", "-i", f"PATH={os.environ['PATH']}", "HOME=/root", f"XDG_STATE_HOME={harness.STATE}", "LANG=C", "A=one", "DEJA_LIKE=mine", "Z=last"]

    def test_programs_that_print_it(self):
        for argv in (["env"], ["env", "-i", "env"], ["env", "-i", "B=c", "env"], ["bash", "-c", "export -p"], ["sh", "-c", "env; (exec env)"],
                     ["sh", "-c", "tr '\\0' '\\n' < /proc/self/environ"], ["sh", "-c", "tr '\\0' '\\n' < /proc/$$/environ; true"],
                     ["sh", "-c", "env -i sh -c 'cat /proc/self/environ'; echo"]):
            with self.subTest(argv=argv):
                self.assertSame(argv, self.OWN)

    def test_the_program_s_own_list_of_libraries(self):
        for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libm.so.6"):
            library = LIBRARIES / name
            if not library.exists():
                continue
            with self.subTest(name):
                self.assertSame(["sh", "-c", "env; env -i env; tr '\\0' '\\n' < /proc/self/environ; LD_PRELOAD= env"],
                                [*self.OWN[:4], f"LD_PRELOAD={library}", *self.OWN[4:]])

    def test_python(self):
        code = ("import ctypes, os, subprocess, sys\n"
                "print(dict(os.environ), os.environb == dict(os.environb))\n"
                "print(open('/proc/self/environ', 'rb').read())\n"
                "print([ctypes.CDLL(None).getenv(name) for name in (b'DEJA_OUT', b'DEJA_REPLAY', b'LD_PRELOAD')])\n"
                "sys.stdout.flush()\n"
                "inner = 'import os; print(dict(os.environ))'\n"
                "for env in {}, {'A': 'b'}, None:\n"
                "    subprocess.run([sys.executable, '-c', inner], env=env, check=True)\n"
                "os.posix_spawn(sys.executable, [sys.executable, '-c', inner], {'S': 'pawned'})\n"
                "os.wait()\n"
                "if os.fork() == 0: os.execve('/usr/bin/env', ['env'], {'LAST': 'one'})\n"
                "os.wait()\n")
        self.assertSame([sys.executable, "-c", code], self.OWN)

    def test_ranks(self):
        def lines(run):
            ports = re.sub(r"(MASTER_PORT=|127\.0\.0\.1:)\d+", r"\1…", self.checked(run).stdout)
            return sorted(ports.splitlines())
        plain = self.command([*self.OWN, harness.DEJA, "launch", "-n", "2", "--", "env"])
        run = self.command([*self.OWN, *self.record_argv("env", n=2)])
        self.assertEqual(lines(run), lines(plain))

    def test_children_are_recorded_all_the_same(self):
        argv = ["sh", "-c", "env -i od -An -N8 -tx1 /dev/urandom; env -i sh -c 'exec od -An -N8 -tx1 /dev/urandom'"]
        run = self.command(self.recorded(argv))
        for _ in range(REPLAYS):
            self.assertEqual(harness.without_report(self.checked(self.replay(0)).stdout), run.stdout)


class Filters(NoticeTest):
    """seccomp filters of the program's own."""

    def setUp(self):
        self.file = self.dir / "file"
        self.file.write_text("in the file\n")

    def check(self, kind, code, complaints, replays=REPLAYS):
        argv = [PROGRAMS / "notice_filtered", kind, self.file]
        run = self.command(self.recorded(argv))
        plain = self.command(argv)

        def undrawn(text):
            return re.sub(r"drawn \d+", "drawn …", text)
        self.assertEqual((run.code, undrawn(run.stdout)), (code, undrawn(plain.stdout)), f"\n{plain}\n{run}")
        self.assertEqual(plain.code, code)
        self.assertEqual(len(self.complaints(run)), complaints, str(run))
        self.assertVerifies()
        for _ in range(replays):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
            self.assertIn("the same as recorded", again.stdout)

    def test_one_that_lets_deja_go_on(self):
        self.check("mild", 7, 0)

    def test_one_that_kills(self):
        self.check("kill", 7, 1)

    def test_one_that_refuses(self):
        self.check("errno", 6, 1)

    def test_one_for_all_threads(self):
        self.check("tsync", 7, 1)

    def test_one_that_kills_indeed(self):
        self.check("deadly", 159, 1)

    def test_the_strict_mode(self):
        # The fence of a replay is a filter, and the kernel takes no other mode then: it is another filter.
        self.check("strict", 5, 1)
        again = self.checked(self.replay(0))
        self.assertIn("rank 0: exit 5, the same as recorded", again.stdout)
        self.assertIn("no verdict after the point where its own seccomp filter refuses all but read, write and exit", again.stdout)
        verdict, = self.checked(self.replay(0, options=["--json"])).json()["ranks"]
        self.assertEqual((verdict["exit_code"], verdict["verdict"]), (5, "same"))
        self.assertIn("seccomp", verdict["unseen"])

    def test_in_children(self):
        script = "; ".join(f"{PROGRAMS}/notice_filtered {kind} {self.file} | tail -n +2; echo ${{PIPESTATUS[0]}}"
                           for kind in ("mild", "kill", "errno", "tsync", "deadly"))
        self.assertSame(["bash", "-c", script], complaints=4)


class Limits(NoticeTest):
    DRAWS = ("import hashlib, os\n"
             "h = hashlib.sha256()\n"
             "for _ in range(20000): h.update(os.urandom(64))\n"
             "print(h.hexdigest())\n")

    @unittest.skipUnless(IS_ROOT and shutil.which("setpriv"), "becomes another user, which root may")
    def test_no_threads(self):
        """The user may have two processes: `deja record` and the program, and no thread of Deja's. Nothing is missing
        all the same."""
        self.dir.chmod(0o777)
        for folder in (self.dir, *harness.DEJA.parents):
            if not folder.stat().st_mode & 0o001:
                self.skipTest(f"{folder} is closed to other users")
        other = ["setpriv", "--reuid=64321", "--clear-groups", "bash", "-c", 'ulimit -u 2; exec "$@"', "bash"]
        argv = ["/usr/bin/python3", "-c", self.DRAWS]
        self.checked(self.command([*other, *argv]))
        run = self.checked(self.command([*other, *self.recorded(argv)]))
        self.assertEqual(self.complaints(run), [])
        self.assertVerifies()
        again = self.checked(self.replay(0, options=["--trust"]))
        self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def limited(self, limit, argv, complaints):
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        argv = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *argv]
        plain = self.command(argv)
        run = self.command(self.recorded(argv))
        self.assertEqual((run.code, run.stdout), (plain.code, plain.stdout), f"\n{plain}\n{run}")
        self.assertLessEqual(len(run.deja_lines()), 5, str(run))
        self.assertEqual(len(self.complaints(run)) != 0, complaints, str(run))

    def test_little_memory(self):
        self.limited("-v 90000", ["sh", "-c", "echo on; exit 3"], True)

    def test_a_small_stack(self):
        self.limited("-s 128", [sys.executable, "-c", "import os; print(len(os.urandom(9)), len(os.listdir('/etc')) > 3)"], False)

    def test_no_locked_memory(self):
        self.limited("-l 0", ["sh", "-c", "echo on; exit 3"], False)

    def test_few_descriptors(self):
        self.limited("-n 6", ["sh", "-c", "echo on; exit 3"], False)

    def test_low_numbers_of_descriptors_are_the_program_s(self):
        script = "import os; print([fd for fd in map(int, os.listdir('/proc/self/fd')) if fd < {}])"
        self.limited("-n 1024", [sys.executable, "-c", script.format(600)], False)
        self.limited("-n 256", [sys.executable, "-c", script.format(200)], False)


class Allocators(NoticeTest):
    """The program's own ones. Those that are preloaded: replay_solo_test.py."""

    def check(self, name):
        program = PROGRAMS / f"notice_allocates{name}"
        if not program.exists():
            self.skipTest(f"{program.name} was not built: the allocator's package is missing (tools/packages.txt)")
        self.check_program([program])

    def check_program(self, argv):
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        run = self.checked(self.command(self.recorded(argv)))
        self.assertRegex(run.stdout, r"^sum [0-9a-f]{16}\n$")
        self.assertEqual(self.complaints(run), [])
        for _ in range(REPLAYS + 1):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout)
            self.assertIn("the same as recorded", again.stdout)

    def test_none(self):
        self.check("")

    def test_the_program_s_own(self):
        self.check("_own")

    def test_jemalloc(self):
        self.check("_jemalloc")

    def test_jemalloc_within(self):
        self.check("_jemalloc_static")

    def test_tcmalloc(self):
        self.check("_tcmalloc")

    def test_tcmalloc_within(self):
        self.check("_tcmalloc_static")

    def test_mimalloc(self):
        self.check("_mimalloc")

    @unittest.skipUnless(os.environ.get("DEJA_ALLOCATORS"), "DEJA_ALLOCATORS names no allocator")
    def test_those_that_are_named(self):
        for library in os.environ["DEJA_ALLOCATORS"].split(":"):
            with self.subTest(library=library):
                preloaded = ["env", f"LD_PRELOAD={library}"]
                self.check_program([*preloaded, PROGRAMS / "notice_allocates"])
                self.assertSame([*preloaded, sys.executable, "-c", "print(len([bytes(i) for i in range(9999)]))"])


class Tools(NoticeTest):
    """What else is preloaded."""

    @unittest.skipUnless(shutil.which("faketime"), "faketime is not installed")
    def test_another_time(self):
        argv = ["faketime", "2001-02-03 04:05:06", "sh", "-c", "date +%Y-%m-%d; env | grep -c DEJA"]
        self.assertSame(argv)

    @unittest.skipUnless(shutil.which("faketime"), "faketime is not installed")
    def test_a_recording_in_another_time(self):
        """The recording's own waits and times are the machine's."""
        run = self.checked(self.command(["faketime", "-f", "-10y", *self.recorded(["date", "+%Y"])]))
        plain = self.command(["faketime", "-f", "-10y", "date", "+%Y"])
        self.assertEqual(run.stdout, plain.stdout)
        self.assertVerifies()
        for prefix in [], ["faketime", "-f", "-10y"]:
            again = self.checked(self.command([*prefix, harness.DEJA, "replay", self.trace_path()]))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
            # Its semaphore is another one in a replay, and no recorded process is to come for it.
            in_gdb = self.checked(self.command([*prefix, harness.DEJA, "replay", self.trace_path(), "--gdb",
                                                "--gdb-command", "run"]))
            self.assertIn("exited normally", in_gdb.stdout, str(in_gdb))

    def test_other_buffers(self):
        self.assertSame(["stdbuf", "-o0", "-eL", "sh", "-c", "printf one; echo two >&2; env | grep -c _STDBUF; seq 5 | stdbuf -oL head -2"])

    def test_connections_that_go_elsewhere(self):
        import socket
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]

            def answer():
                for number in range(2):
                    with server.accept()[0] as peer:
                        peer.sendall(b"answer %d\n" % number)
            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            code = ("import socket\n"
                    f"with socket.create_connection(('192.0.2.7', {port}), timeout=20) as peer: print(peer.recv(100))\n")
            env = {"LD_PRELOAD": PROGRAMS / "libnotice_reroutes.so"}
            plain = self.checked(self.command([sys.executable, "-c", code], env=env))
            run = self.checked(self.command(self.recorded([sys.executable, "-c", code]), env=env))
            thread.join()
        self.assertEqual((plain.stdout, run.stdout), ("b'answer 0\\n'\n", "b'answer 1\\n'\n"))
        self.assertEqual(harness.without_report(self.checked(self.replay(0)).stdout), run.stdout)

    ADDRESSES = r"""
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/random.h>
        int main(int argc, char** argv) {
          unsigned drawn = 0;
          if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return 2;
          char* block = malloc(10 + argc);
          memset(block, 0, 10 + argc);
          printf("drawn %u\n", drawn);
          fflush(stdout);
          const int at = strcmp(argv[argc - 1], "beyond") == 0 ? 30 : 3;
          block[at] = 1;
          printf("%d\n", block[2]);
          free(block);
          return 0;
        }"""

    def sanitized(self, compiler, *options):
        if not shutil.which(compiler):
            self.skipTest(f"{compiler} is not installed")
        source, program = self.dir / "program.c", self.dir / "program"
        source.write_text(self.ADDRESSES)
        built = subprocess.run([compiler, "-g", "-fsanitize=address", *options, source, "-o", program], capture_output=True, check=False)
        if built.returncode != 0:
            self.skipTest(f"{compiler} has no address sanitizer: {built.stderr.decode()[:200]}")
        run = self.checked(self.command(self.recorded([program, "well"])))
        self.assertNotIn("Sanitizer", run.stderr)
        self.assertEqual(harness.without_report(self.checked(self.replay(0)).stdout), run.stdout)
        shutil.rmtree(self.trace_path())
        plain = self.command([program, "beyond"])
        run = self.command(self.recorded([program, "beyond"]))
        self.assertEqual(run.code, plain.code, str(run))
        for one in (plain, run):
            self.assertIn("heap-buffer-overflow", one.stderr)
        again = self.replay(0)
        self.assertIn("heap-buffer-overflow", again.stderr)
        # clang's asks a program of its own for names, which makes a second line.
        self.assertTrue(again.stdout.startswith(run.stdout + "rank 0: "), str(again))
        self.assertEqual(again.code, 0, str(again))

    def test_gcc_s_address_sanitizer(self):
        self.sanitized("gcc")

    def test_clang_s_address_sanitizer(self):
        self.sanitized("clang-14" if shutil.which("clang-14") else "clang")

    def test_clang_s_address_sanitizer_as_a_library(self):
        compiler = "clang-14" if shutil.which("clang-14") else "clang"
        found = subprocess.run([compiler, "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True, check=False) \
            if shutil.which(compiler) else None
        folder = Path(found.stdout.strip()).parent if found else Path()
        self.sanitized(compiler, "-shared-libasan", f"-Wl,-rpath,{folder}")


class Places(NoticeTest):
    """Another root folder, io_uring, and Deja inside Deja."""

    def test_io_uring(self):
        program = PROGRAMS / "notice_uring"
        plain = self.command([program])
        run = self.command(self.recorded([program]))
        self.assertEqual((run.code, run.stdout), (plain.code, plain.stdout))
        self.assertEqual(len(self.complaints(run)), 1, str(run))
        self.assertIn("io_uring", self.complaints(run)[0])
        self.assertIn("io_uring", self.deja("info", self.trace_path()).stdout)
        self.assertIn("no ring: ", self.replay(0).stdout)

    @unittest.skipUnless(IS_ROOT, "chroot is root's")
    def test_another_root_folder(self):
        below = self.dir / "below"
        below.mkdir()
        (below / "inside").write_text("below\n")
        program = PROGRAMS / "notice_below_root"
        plain = self.command([program, below])
        run = self.command(self.recorded([program, below]))
        self.assertEqual((run.code, run.stdout, plain.code), (4, plain.stdout, 4), str(run))
        self.assertEqual(len(self.complaints(run)), 1, str(run))
        self.assertIn("chroot", self.complaints(run)[0])
        self.assertVerifies()

    @unittest.skipUnless(IS_ROOT, "chroot is root's")
    def test_a_program_below_another_root_folder(self):
        busybox = next((path for path in ("/bin/busybox", "/usr/bin/busybox") if os.path.exists(path)), None)
        below = self.dir / "below"
        below.mkdir()
        (below / "inside").write_text("below\n")
        if busybox:
            shutil.copy(busybox, below / "busybox")
            argv = [PROGRAMS / "notice_below_root", below, "/busybox", "echo", "ran"]
        else:
            for library in subprocess.run(["ldd", "/bin/echo"], capture_output=True, text=True, check=True).stdout.split():
                if library.startswith("/"):
                    (below / library[1:]).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(library, below / library[1:])
            shutil.copy("/bin/echo", below / "program")
            argv = [PROGRAMS / "notice_below_root", below, "/program", "ran"]
        plain = self.checked(self.command(argv))
        run = self.checked(self.command(self.recorded(argv)))
        self.assertEqual((run.stdout, plain.stdout), ("inside: below\nran\n", "inside: below\nran\n"))
        self.assertNotIn("ld.so", run.stderr)
        self.assertIn("below another root folder", run.stderr)

    def test_a_recording_inside_a_recording(self):
        inner = self.recorded(["sh", "-c", "od -An -N8 -tx1 /dev/urandom; exit 3"], trace="inner.deja")
        run = self.command(self.recorded(inner, trace="outer.deja"))
        self.assertEqual(run.code, 3, str(run))
        self.assertIn("not recorded: processes of a recording or a replay inside this one", run.stderr)
        for trace in ("inner.deja", "outer.deja"):
            self.assertVerifies(trace)
        again = self.checked(self.replay(0, trace="inner.deja"))
        self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_a_replay_inside_a_recording(self):
        drawn = self.checked(self.record_single("od", "-An", "-N8", "-tx1", "/dev/urandom", trace="inner.deja"))
        replay = [harness.DEJA, "replay", self.trace_path("inner.deja"), "--rank", "0"]
        plain = self.checked(self.command(replay))
        run = self.checked(self.command(self.recorded(replay, trace="outer.deja")))
        self.assertEqual(harness.without_report(run.stdout), drawn.stdout)
        self.assertEqual(run.stdout.splitlines()[-1].split(":")[0], plain.stdout.splitlines()[-1].split(":")[0])
        self.assertIn("not recorded: what the program does under its own seccomp filter", run.stderr)
        self.assertVerifies("outer.deja")


if __name__ == "__main__":
    harness.main()
