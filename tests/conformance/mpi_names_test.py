"""No function of MPI is silently absent: each is in mpi.def or, with a reason, in mpi_forwarded.def."""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "api" / "tables"
HEADER = os.environ.get("DEJA_MPI_HEADER", "")
LIBRARY = os.environ.get("DEJA_MPI_LIBRARY", "")
# Hooked by hand, since it takes any number of arguments; two functions that only add and subtract; what programs pass
# by address, as names of Fortran's, or as callbacks.
OTHERS = {"MPI_Pcontrol", "MPI_Aint_add", "MPI_Aint_diff"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def rows(name, macro):
    text = without_comments((API / name).read_text())
    skip = r"[^,]+,[^,]+," if macro == "DEJA_FN" else ""
    return re.findall(macro + r"\(" + skip + r"\s*(MPI_\w+)\s*,", text)


TABLE = rows("mpi.def", "DEJA_FN")
FORWARDED = rows("mpi_forwarded.def", "DEJA_FORWARD")


class MpiNames(unittest.TestCase):
    def test_lists_do_not_overlap(self):
        self.assertEqual(len(set(TABLE + FORWARDED)), len(TABLE + FORWARDED))

    def test_reasons_are_given(self):
        text = (API / "mpi_forwarded.def").read_text()
        for name in FORWARDED:
            self.assertRegex(text, rf'DEJA_FORWARD\({name}, \d+,\s+"[^"]{{10,}}"\)')

    def test_installed_header(self):
        if not os.path.exists(HEADER):
            self.skipTest("no mpi.h was found: tools/setup.sh --tests installs one (libopenmpi-dev)")
        text = without_comments(Path(HEADER).read_text())
        declared = set(re.findall(r"\b(?:int|double|MPI_\w+)\s+(MPI_[A-Z][a-z0-9_]\w*)\s*\(", text))
        self.assertIn("MPI_Allreduce", declared)
        self.assertGreater(len(declared), 300)
        # MPI 4, and twins of known functions with large counts.
        declared = {n for n in declared if not n.endswith("_c") or n[:-2] not in TABLE}
        missing = declared - set(TABLE + FORWARDED) - OTHERS
        self.assertEqual(sorted(missing), [], f"{HEADER} has functions that no list names")

    def test_installed_library(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("no MPI library was found: tools/setup.sh --tests installs one (libopenmpi-dev)")
        output = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        exported = set(re.findall(r" [TW] (MPI_[A-Z][a-z]\w*)", output))
        self.assertIn("MPI_Allreduce", exported)
        exported = {n for n in exported if not n.endswith("_c") or n[:-2] not in TABLE}
        self.assertEqual(sorted(exported - set(TABLE + FORWARDED) - OTHERS), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
