"""No function of NCCL is silently absent: each is in nccl.def or, with a reason, in nccl_forwarded.def."""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import api_rows  # noqa: E402

SYSTEM_HEADER = os.environ.get("DEJA_NCCL_HEADER", "")


def declared_functions(header):
    """Names like ncclX that are followed by a parameter list, with or without the p in front."""
    text = api_rows.without_comments(Path(header).read_text())
    names = re.findall(r"\bp?(nccl[A-Z]\w*)\s*\(", text)
    names += re.findall(r"DEJA_NCCL_DECLARE\([^,]+,\s*(nccl\w+)\s*,", text)
    return set(names)


TABLE = api_rows.rows("nccl.def", "DEJA_FN", "nccl")
FORWARDED = api_rows.rows("nccl_forwarded.def", "DEJA_FORWARD", "nccl")


class NcclNames(unittest.TestCase):
    def test_the_parser_reads_headers(self):
        names = declared_functions(api_rows.ROOT / "include" / "compat" / "nccl.h")
        self.assertIn("ncclAllReduce", names)
        self.assertIn("ncclParamDumpAll", names)
        self.assertGreater(len(names), 60)

    def test_own_header_and_table_have_the_same_functions(self):
        self.assertEqual(sorted(declared_functions(api_rows.ROOT / "include" / "compat" / "nccl.h")), sorted(TABLE))

    def test_lists_do_not_overlap(self):
        self.assertEqual(len(set(TABLE + FORWARDED)), len(TABLE + FORWARDED))

    def test_reasons_are_given(self):
        api_rows.check_reasons(self, "nccl_forwarded.def", FORWARDED)

    def test_installed_header(self):
        if not os.path.exists(SYSTEM_HEADER):
            self.skipTest("no nccl.h was found: install libnccl-dev, or configure with -DDEJA_NCCL_INCLUDE=FOLDER")
        missing = declared_functions(SYSTEM_HEADER) - set(TABLE + FORWARDED)
        self.assertEqual(sorted(missing), [], f"{SYSTEM_HEADER} has functions that no list names")

    def test_installed_library(self):
        folder = Path(SYSTEM_HEADER).parent.parent if SYSTEM_HEADER else Path("/usr")
        places = [folder / "lib", folder / "lib64", folder / "lib" / "x86_64-linux-gnu", Path("/usr/local/cuda/lib64")]
        library = next((p / "libnccl.so.2" for p in places if (p / "libnccl.so.2").exists()), None)
        if library is None:
            self.skipTest(f"no libnccl.so.2 is below {folder} or in {places[-1]}: install libnccl2 there")
        output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        exported = set(re.findall(r" [TW] (nccl[A-Z]\w*)", output))
        self.assertIn("ncclAllReduce", exported)
        self.assertEqual(sorted(exported - set(TABLE + FORWARDED)), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
