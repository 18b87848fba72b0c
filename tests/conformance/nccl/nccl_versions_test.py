"""Deja's own nccl.h against those of many releases of NCCL: types of functions, values, the layout of structures.

DEJA_NCCL_HEADERS: a folder with RELEASE/nccl.h in it (the wheels of nvidia-nccl-cu12 have that file);
DEJA_CUDA_INCLUDE: the folder of cuda_runtime.h.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import api_rows  # noqa: E402

HEADERS = os.environ.get("DEJA_NCCL_HEADERS", "")
CUDA = os.environ.get("DEJA_CUDA_INCLUDE", "")
COMPILER = os.environ.get("CXX", "c++")
NEWEST = (2, 32, 3)  # of which Deja has the functions
HERE = Path(__file__).resolve().parent

PRINT = """
#include <nccl.h>
#include <cstddef>
#include <cstdio>
struct Row { const char* what; long long value; };
constexpr Row kRows[] = {
#include "tests/conformance/nccl/nccl_layout_rows.h"
};
int main() {
  std::printf("sizeof ncclConfig_t=%zu\\n", sizeof(ncclConfig_t));
  for (const Row& row : kRows) std::printf("%s=%lld\\n", row.what, row.value);
}
"""


def size_of_config(release):
    """As docs and api/ have it: what a program of that release hands over."""
    for since, size in (((2, 32), 120), ((2, 31), 112), ((2, 30), 96), ((2, 29), 88), ((2, 28), 80), ((2, 27), 72), ((2, 18), 48), ((2, 17), 40)):
        if release >= since:
            return size
    return None


def release_of(folder):
    return tuple(int(part) for part in re.findall(r"\d+", folder.name))


class NcclVersions(unittest.TestCase):
    def compiled(self, folder, source, *options):
        done = subprocess.run([COMPILER, "-std=c++20", "-w", "-I", api_rows.ROOT, "-isystem", folder, "-isystem", CUDA, source,
                               *options], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def rows(self, folder, work):
        source = Path(work) / "print.cc"
        source.write_text(PRINT)
        self.compiled(folder, source, "-o", Path(work) / "print")
        out = subprocess.run([Path(work) / "print"], capture_output=True, text=True, check=True).stdout
        return dict(line.split("=") for line in out.splitlines())

    def test_each_release(self):
        seen = []
        with tempfile.TemporaryDirectory() as work:
            ours = self.rows(api_rows.ROOT / "include" / "compat", work)
            for folder in sorted((p.parent for p in Path(HEADERS).glob("*/nccl.h")), key=release_of):
                release = release_of(folder)
                if not (2, 17) <= release <= NEWEST:
                    continue
                with self.subTest(folder.name):
                    self.compiled(folder, HERE / "nccl_layout_system.cc", "-fsyntax-only")
                    theirs = self.rows(folder, work)
                    self.assertEqual(int(theirs.pop("sizeof ncclConfig_t")), size_of_config(release))
                    self.assertGreater(len(theirs), 45)
                    self.assertEqual(theirs, {what: ours.get(what) for what in theirs})
                    text = api_rows.without_comments((folder / "nccl.h").read_text())
                    known = set(api_rows.rows("nccl.def", "DEJA_FN", "nccl") +
                                api_rows.rows("nccl_forwarded.def", "DEJA_FORWARD", "nccl"))
                    self.assertEqual(sorted(set(re.findall(r"\bp?(nccl[A-Z]\w*)\s*\(", text)) - known), [])
                    seen.append(folder.name)
        print("agree:", " ".join(seen))
        self.assertTrue(seen, f"no nccl.h of 2.17 to 2.32 in {HEADERS}")


if __name__ == "__main__":
    if not HEADERS or not CUDA:
        print("skipped: DEJA_NCCL_HEADERS and DEJA_CUDA_INCLUDE name no headers to compare with")
        sys.exit(77)
    unittest.main(verbosity=2)
