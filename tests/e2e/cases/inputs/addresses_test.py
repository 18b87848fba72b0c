"""Where a program's memory is and what it holds: the same in a recording, a replay and a replay in gdb."""
import ctypes
import os
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

LIBRARIES = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
# What the C library's allocator writes into blocks that a thread has freed is drawn by itself in each process.
NO_KEYS = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


ADDR_NO_RANDOMIZE = 0x0040000


def layout_can_be_fixed():
    libc = ctypes.CDLL(None)
    old = libc.personality(ctypes.c_ulong(0xffffffff))
    fixed = libc.personality(ctypes.c_ulong(old | ADDR_NO_RANDOMIZE)) != -1
    libc.personality(ctypes.c_ulong(old))
    return fixed


def of_program(text):
    """The program's lines, of gdb's output, too."""
    return [line for line in text.splitlines() if re.match(r"(program|main|mapping|stream|one|two|three|thread|libz)\b", line)]


@unittest.skipUnless(layout_can_be_fixed(), "personality(ADDR_NO_RANDOMIZE) is denied here")
class Addresses(harness.DejaTest):
    def assertSame(self, env, change=lambda line: line, gdb=True):
        run = self.checked(self.record_single(harness.app("addresses"), env=env))
        recorded = [change(line) for line in of_program(run.stdout)]
        self.assertEqual(len(recorded), 17, str(run))
        for _ in range(int(os.environ.get("DEJA_REPLAYS", 1))):
            again = self.checked(self.replay(0, env=env))
            self.assertEqual([change(line) for line in of_program(again.stdout)], recorded)
        if gdb and shutil.which("gdb"):
            # gdb's own lines on threads would stand within the program's.
            quiet = ["--gdb-command", "set print thread-events off", "--gdb-command", "run"]
            again = self.replay(0, options=["--gdb", *quiet], env=env)
            self.assertEqual([change(line) for line in of_program(again.stdout)], recorded)

    def test_addresses(self):
        self.assertSame(None, lambda line: re.sub(", fresh memory .*", "", line))

    def test_contents_of_fresh_memory(self):
        self.assertSame(NO_KEYS)

    def test_other_allocators(self):
        # They call hooks while they start and when they map memory.
        found = False
        for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
            library = LIBRARIES / name
            if not library.exists():
                continue
            found = True
            with self.subTest(name):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                self.assertSame({"LD_PRELOAD": str(library)}, gdb=False)
        if not found:
            self.skipTest("neither libjemalloc2 nor libtcmalloc-minimal4 is installed")

    def test_objects_of_python_s(self):
        """By which a set of them is ordered: its dictionary of the environment is the same."""
        code = ("class C: pass\n"
                "print([id(x) for x in {C() for _ in range(50)}])\n")
        python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
        run = self.checked(self.record_single(python, "-c", code))
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def test_shuffled_lines(self):
        for command in (["shuf", "-n", "5"], ["sort", "-R"]):
            with self.subTest(command[0]):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                lines = self.dir / "lines"
                lines.write_text("".join(f"{i}\n" for i in range(1000)))
                run = self.checked(self.record_single(*command, lines))
                again = self.checked(self.replay(0))
                self.assertEqual(harness.without_report(again.stdout), run.stdout)


if __name__ == "__main__":
    harness.main()
