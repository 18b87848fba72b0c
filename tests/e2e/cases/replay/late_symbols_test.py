"""In gdb, symbols of libraries that the program loads while it runs: read when a breakpoint or a stack needs them."""
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

FIRST = """\
volatile int loaded;
__attribute__((constructor)) static void at_load(void) { loaded = 1; }
int twice(int value) { return 2 * value; }
"""
SECOND = "int thrice(int (*first)(int), int value) { return first(value) + value; }\n"
SCRIPT = """\
import ctypes, deja
first, second = ctypes.CDLL("./libfirst.so"), ctypes.CDLL("./libsecond.so")
for step in range(8):
    deja.step(step)
    print(first.twice(step), second.thrice(first.twice, step), flush=True)
"""


@unittest.skipUnless(shutil.which("gdb") and shutil.which("cc"), "no gdb or cc")
class LateSymbols(harness.DejaTest):
    def setUp(self):
        super().setUp()
        for name, text in (("first", FIRST), ("second", SECOND)):
            (self.dir / f"{name}.c").write_text(text)
            self.checked(self.command(["cc", "-O1", "-fPIC", "-shared", "-o", self.dir / f"lib{name}.so", self.dir / f"{name}.c"]))
        (self.dir / "train.py").write_text(SCRIPT)
        self.checked(self.record_single(sys.executable, "train.py", cwd=self.dir))

    def gdb(self, *commands):
        run = self.replay(0, options=("--gdb", *(word for command in commands for word in ("--gdb-command", command))))
        for text in "Traceback", "Python Exception", "Error":
            self.assertNotIn(text, run.stderr, f"\n{run}")
        return run.stdout

    def test_breakpoints_of_before_the_run_stop_where_the_library_is_loaded(self):
        out = self.gdb("break at_load", "break thrice", "run", "info sharedlibrary", "continue", "backtrace 3")
        first = out.index("Breakpoint 1, ")
        second = out.index("Breakpoint 2, ")
        self.assertRegex(out[first:second], r"in at_load \(\) from \S*libfirst\.so")
        self.assertNotIn("libsecond", out[first:out.index("deja: ", first)])
        self.assertRegex(out[second:], r"in thrice \(\) from \S*libsecond\.so")

    def test_a_breakpoint_reads_its_library_and_a_stack_those_on_it(self):
        out = self.gdb("deja until step 3", "info sharedlibrary libfirst", "break thrice", "continue",
                       "info sharedlibrary libfirst", "delete", "break twice", "continue", "backtrace 2",
                       "deja goto step 2", "continue", "deja reverse-continue")
        self.assertRegex(out, r"deja: the symbols of \d+ libraries are read when a stack or a breakpoint needs them")
        self.assertIn("deja: breakpoint 1: the symbols of libsecond.so are read for it\n", out)
        self.assertIn("deja: breakpoint 2: the symbols of libfirst.so are read for it\n", out)
        before = out.index("libfirst.so")
        self.assertRegex(out[:before], r"\bNo +\S*$")
        stack = out[out.index("#0 ", out.index("Breakpoint 2, ")):]
        self.assertRegex(stack, r"#0 +\S+ in twice \(\) at \S*libfirst\.so\n#1 +\S+ in thrice \(\) at \S*libsecond\.so\n")
        back = out[out.index("step 2 begins"):]
        self.assertRegex(back, r"Breakpoint 2, \S+ in twice \(\)")


if __name__ == "__main__":
    harness.main()
