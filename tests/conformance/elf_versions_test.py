#!/usr/bin/env python3
"""packaging/elf_versions.py and make_portable.py: what readelf says of files before and after, and refusals."""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build"))
sys.path.insert(0, str(ROOT / "packaging"))
import elf_versions  # noqa: E402
import make_portable  # noqa: E402

LIMIT = (2, 31)
GLIBC = {"memcpy": {"GLIBC_2.2.5", "GLIBC_2.14"}, "pthread_join": {"GLIBC_2.2.5", "GLIBC_2.34"}, "stat": {"GLIBC_2.33"},
         "timer_create": {"GLIBC_2.2.5", "GLIBC_2.3.3", "GLIBC_2.34"}}


def readelf_versions(path):
    """{symbol: version} of what a file needs of glibc."""
    said = subprocess.run(["readelf", "--wide", "--dyn-syms", path], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r" UND (\w+)@(GLIBC_[\w.]+)", said))


class ElfVersions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.copy = Path(folder.name, "library.so")
        shutil.copyfile(BUILD / "lib" / "libdeja_loopback.so", self.copy)
        self.before = readelf_versions(self.copy)
        # What is newest where this was built, if that is older than the limit.
        newest = max(elf_versions.number(version) for version in self.before.values())
        self.limit = min(LIMIT, (newest[0], newest[1] - 1))

    def test_it_reads_what_readelf_reads(self):
        file = elf_versions.ElfVersions(self.copy)
        newer = {name: version for name, _, version in file.newer(self.limit)}
        self.assertTrue(newer)
        self.assertEqual(newer, {name: version for name, version in self.before.items()
                                 if elf_versions.number(version) > self.limit})
        self.assertIn("ncclAllReduce", file.exports())

    def test_a_lowered_library_asks_for_no_newer_version_and_loads(self):
        file = elf_versions.ElfVersions(self.copy)
        newer = {name for name, _, _ in file.newer(self.limit)}
        self.assertTrue(file.lower(self.limit))
        after = readelf_versions(self.copy)
        self.assertEqual(after, {name: version for name, version in self.before.items() if name not in newer})
        needed = subprocess.run(["readelf", "--wide", "--version-info", self.copy], capture_output=True, text=True,
                                check=True).stdout
        for version in re.findall(r"Name: (GLIBC_[\d.]+) ", needed):
            self.assertLessEqual(elf_versions.number(version), self.limit)
        self.assertEqual(elf_versions.ElfVersions(self.copy).newer(self.limit), [])
        self.assertFalse(elf_versions.ElfVersions(self.copy).lower(self.limit))
        version = ctypes.c_int()
        self.assertEqual(ctypes.CDLL(str(self.copy)).ncclGetVersion(ctypes.byref(version)), 0)
        self.assertGreater(version.value, 20000)

    def test_symbols_that_cannot_be_lowered_are_reported(self):
        def problem(name, beside=()):
            return make_portable.problem_of(name, "libc.so.6", "GLIBC_2.34", GLIBC, LIMIT, beside)
        self.assertIsNone(problem("pthread_join"))
        self.assertIn("is there since", problem("stat"))
        self.assertIn("is there since", problem("unheard_of"))
        self.assertIsNone(problem("stat", beside={"stat"}))
        self.assertIn("meant something else", problem("timer_create"))

    def test_other_files_are_refused(self):
        self.copy.write_text("no library")
        self.assertFalse(elf_versions.is_elf(self.copy))
        with self.assertRaises(elf_versions.ElfError):
            elf_versions.ElfVersions(self.copy)


if __name__ == "__main__":
    unittest.main(verbosity=2)
