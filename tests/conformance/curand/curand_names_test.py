"""No function of cuRAND's host API is silently absent: each is in curand.def or, with a reason, in curand_forwarded.def."""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import api_rows  # noqa: E402

SYSTEM_HEADER = os.environ.get("DEJA_CURAND_HEADER", "")
OWN_HEADER = api_rows.ROOT / "include" / "compat" / "curand.h"

TABLE = api_rows.rows("curand.def", "DEJA_FN", "curand")
FORWARDED = api_rows.rows("curand_forwarded.def", "DEJA_FORWARD", "curand")


def declared_functions(header):
    return set(re.findall(r"\b(curand[A-Z]\w*)\s*\(", api_rows.without_comments(Path(header).read_text())))


class CurandNames(unittest.TestCase):
    def test_own_header_and_table_have_the_same_functions(self):
        self.assertGreater(len(TABLE), 20)
        self.assertEqual(sorted(declared_functions(OWN_HEADER)), sorted(TABLE))

    def test_lists_do_not_overlap(self):
        self.assertEqual(len(set(TABLE + FORWARDED)), len(TABLE + FORWARDED))

    def test_reasons_are_given(self):
        api_rows.check_reasons(self, "curand_forwarded.def", FORWARDED)

    def test_installed_header(self):
        if not os.path.exists(SYSTEM_HEADER):
            self.skipTest("no curand.h was found: install libcurand-dev of CUDA's toolkit, or configure with "
                          "-DDEJA_CURAND_INCLUDE=FOLDER")
        missing = declared_functions(SYSTEM_HEADER) - set(TABLE + FORWARDED)
        self.assertEqual(sorted(missing), [], f"{SYSTEM_HEADER} has functions that no list names")

    def test_installed_library(self):
        folder = Path(SYSTEM_HEADER).parent.parent if SYSTEM_HEADER else Path("/usr/local/cuda")
        library = next((p for p in (folder / "lib64" / "libcurand.so.10", folder / "lib" / "libcurand.so.10")
                        if p.exists()), None)
        if library is None:
            self.skipTest(f"no libcurand.so.10 is below {folder}: install libcurand of CUDA's toolkit there, or configure with "
                          "-DDEJA_CURAND_INCLUDE=FOLDER of another")
        output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        exported = set(re.findall(r" [TW] (curand[A-Z]\w*)", output))
        self.assertIn("curandGenerateUniform", exported)
        self.assertEqual(sorted(exported - set(TABLE + FORWARDED)), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
