"""Every function in api/tables/libc.def is named by a test's program."""
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {".cc", ".c", ".h", ".py", ".S", ".inc"}


class LibcRows(unittest.TestCase):
    def test_each_is_named_by_a_test(self):
        rows = re.findall(r"^DEJA_FN\(\d+, [^,]+, (\w+),", (ROOT / "api" / "tables" / "libc.def").read_text(), re.M)
        self.assertGreater(len(rows), 300)
        words = set()
        for folder in ("tests", "examples"):
            for path in (ROOT / folder).rglob("*"):
                if path.suffix in PROGRAMS and path.is_file():
                    words.update(re.findall(r"\w+", path.read_text(errors="replace")))
        self.assertEqual([row for row in rows if row not in words], [])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
