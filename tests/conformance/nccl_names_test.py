"""No function of NCCL is silently absent: each is in nccl.def or, with a reason, in nccl_forwarded.def."""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "preload" / "api"
SYSTEM_HEADER = os.environ.get("DEJA_NCCL_HEADER", "")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def declared_functions(header):
    """Names like ncclX that are followed by a parameter list, with or without the p in front."""
    text = without_comments(Path(header).read_text())
    names = re.findall(r"\bp?(nccl[A-Z]\w*)\s*\(", text)
    names += re.findall(r"DEJA_NCCL_DECLARE\([^,]+,\s*(nccl\w+)\s*,", text)
    return set(names)


def rows(name, macro):
    text = without_comments((API / name).read_text())
    skip = r"[^,]+,[^,]+," if macro == "DEJA_FN" else ""
    return re.findall(macro + r"\(" + skip + r"\s*(nccl\w+)\s*,", text)


TABLE = rows("nccl.def", "DEJA_FN")
FORWARDED = rows("nccl_forwarded.def", "DEJA_FORWARD")


class NcclNames(unittest.TestCase):
    def test_the_parser_reads_headers(self):
        names = declared_functions(ROOT / "include" / "compat" / "nccl.h")
        self.assertIn("ncclAllReduce", names)
        self.assertIn("ncclParamDumpAll", names)
        self.assertGreater(len(names), 60)

    def test_own_header_and_table_have_the_same_functions(self):
        self.assertEqual(sorted(declared_functions(ROOT / "include" / "compat" / "nccl.h")), sorted(TABLE))

    def test_lists_do_not_overlap(self):
        self.assertEqual(len(set(TABLE + FORWARDED)), len(TABLE + FORWARDED))

    def test_reasons_are_given(self):
        text = (API / "nccl_forwarded.def").read_text()
        for name in FORWARDED:
            self.assertRegex(text, rf'DEJA_FORWARD\({name}, \d+,\s+"[^"]{{10,}}"\)')

    def test_installed_header(self):
        if not os.path.exists(SYSTEM_HEADER):
            self.skipTest("no nccl.h is installed")
        missing = declared_functions(SYSTEM_HEADER) - set(TABLE + FORWARDED)
        self.assertEqual(sorted(missing), [], f"{SYSTEM_HEADER} has functions that no list names")

    def test_installed_library(self):
        folder = Path(SYSTEM_HEADER).parent.parent if SYSTEM_HEADER else Path("/usr")
        places = [folder / "lib", folder / "lib64", folder / "lib" / "x86_64-linux-gnu", Path("/usr/local/cuda/lib64")]
        library = next((p / "libnccl.so.2" for p in places if (p / "libnccl.so.2").exists()), None)
        if library is None:
            self.skipTest("no libnccl.so.2 is installed")
        output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        exported = set(re.findall(r" [TW] (nccl[A-Z]\w*)", output))
        self.assertIn("ncclAllReduce", exported)
        self.assertEqual(sorted(exported - set(TABLE + FORWARDED)), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
