"""What a library for the user's process exports and needs.

usage: exports_test.py LIBRARY KIND [NAME …]

KIND is record (the hooks), replay (the hooks and the rest of NCCL's and MPI's API) or nccl (NCCL's API alone). NAME: further
names that must be exported. Exported must be exactly the tables' functions and the names; nothing of what is linked in
statically may be visible; nothing but the C library and libgcc_s may be needed.
"""
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY, KIND, *NAMES = sys.argv[1:] if len(sys.argv) > 2 else ("", "")
SPAN = 0x2000000  # cmake/span.ld
THREAD_LOCAL = (0x200, 0x10)  # cmake/thread_locals.ld: size and alignment
MAY_NEED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2",
            "libdl.so.2", "libpthread.so.0", "librt.so.1"}  # the last three: glibc before 2.34


def table(name):
    path = ROOT / "api" / "tables" / name
    if not path.exists():
        return set()
    text = path.read_text()
    return set(re.findall(r"^DEJA_FN\([^,]+,[^,]+,\s*(\w+)\s*,", text, re.M) +
               re.findall(r"^DEJA_FORWARD\(\s*(\w+)\s*,", text, re.M))


def tool(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


class Exports(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.dynamic = tool("readelf", "-Wd", LIBRARY)
        cls.exported = {line.split()[-1] for line in tool("nm", "-D", "--defined-only", LIBRARY).splitlines()}
        cls.symbols = tool("nm", "--defined-only", LIBRARY)

    def expected(self):
        mpi = table("mpi.def")
        hooks = table("nccl.def") | table("libc.def") | table("curand.def") | mpi | {"P" + name for name in mpi} | set(NAMES)
        whole = table("nccl.def") | table("nccl_forwarded.def")
        whole |= {"p" + name for name in whole}
        mpi = table("mpi_forwarded.def")
        whole |= mpi | {"P" + name for name in mpi}
        return {"record": hooks, "replay": hooks | whole, "nccl": set(NAMES)}[KIND]

    def test_exports_are_the_tables(self):
        if KIND == "nccl":
            names = table("nccl.def")
            self.assertEqual(sorted((names | {"p" + n for n in names}) - self.exported), [], "missing")
            strangers = [n for n in self.exported if not re.fullmatch(r"p?nccl[A-Z]\w*", n) and n not in NAMES]
            self.assertEqual(strangers, [])
            return
        self.assertEqual(sorted(self.exported - self.expected()), [], "exported by mistake")
        self.assertEqual(sorted(self.expected() - self.exported), [], "not exported")

    def test_needs_the_c_library_only(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", self.dynamic))
        self.assertIn("libc.so.6", needed)
        self.assertEqual(sorted(needed - MAY_NEED), [])

    def test_no_symbol_versions(self):
        # A versioned definition does not come before the C library's own.
        self.assertNotIn("Version definition section", tool("readelf", "-WV", LIBRARY))

    def test_unwinder_is_the_process_s_own(self):
        # Not even hidden ones: pthread_cancel through a frame of ours would crash.
        self.assertEqual(re.findall(r" [A-Za-z] (_Unwind_\w+|__register_frame\w*)$", self.symbols, re.M), [])

    def test_name(self):
        soname = re.findall(r"\(SONAME\).*\[(.*)\]", self.dynamic)
        if KIND == "record":
            self.assertNotIn("libnccl.so.2", soname)
        else:
            self.assertEqual(soname, ["libnccl.so.2"])

    def test_allocates_with_a_heap_of_its_own(self):
        # Undefined, it would be the program's.
        undefined = {line.split()[-1].split("@")[0] for line in tool("nm", "-D", "--undefined-only", LIBRARY).splitlines()}
        theirs = {"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign",
                  "__cxa_thread_atexit_impl"}
        self.assertEqual(sorted(undefined & theirs), [])

    def test_takes_as_much_room_as_the_others(self):
        # Else what is loaded after it, and the stacks of threads, would be elsewhere in a replay.
        segments = re.findall(r"^ +(LOAD|TLS) +\S+ +(\S+) +\S+ +\S+ +(\S+) .* (\S+)$", tool("readelf", "-Wl", LIBRARY), re.M)
        sizes = [(kind, *(int(number, 16) for number in numbers)) for kind, *numbers in segments]
        self.assertEqual(max(at + size for kind, at, size, _ in sizes if kind == "LOAD"), SPAN)
        if "libdeja_re" in LIBRARY:  # those that record and that replay
            self.assertEqual([facts for kind, _, *facts in sizes if kind == "TLS"], [list(THREAD_LOCAL)])

    def test_ordinary_memory(self):
        self.assertNotIn("TEXTREL", self.dynamic)
        stack = re.search(r"GNU_STACK.*", tool("readelf", "-Wl", LIBRARY)).group(0)
        self.assertNotIn("E", stack.split()[-2], "the stack must not become executable")

    @unittest.skipUnless(KIND == "replay", "for the library that stands in for NCCL")
    def test_stands_in_for_the_installed_nccl(self):
        path = Path("/usr/local/cuda/lib64/libnccl.so.2")
        if not path.exists():
            self.skipTest(f"{path} is not there: install libnccl2 in CUDA's toolkit")
        theirs = set(re.findall(r" [TW] (p?nccl[A-Z]\w*)", tool("nm", "-D", "--defined-only", path)))
        self.assertEqual(sorted(theirs - self.exported), [], "a program that imports one of these would not start")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
