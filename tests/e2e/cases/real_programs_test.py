"""Programs that nobody here wrote, recorded and replayed as single processes. Each is nondeterministic by itself."""
import hashlib
import os
import random
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

SCRIPTS = harness.ROOT / "tests" / "e2e" / "apps" / "real"
REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
# Debian's own: it has what the packages install.
PYTHON = "/usr/bin/python3"


def has_module(name):
    return subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def needs_program(name):
    return unittest.skipUnless(shutil.which(name), f"{name} is not installed")


class RealPrograms(harness.DejaTest):
    def assertReplays(self, *command):
        run = self.checked(self.record_single(*command))
        self.assertNotEqual(run.stdout, self.checked(self.command(command)).stdout,
                            "the program does the same each time by itself")
        for _ in range(REPLAYS):
            replayed = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(replayed.stdout), run.stdout)
        return run

    @unittest.skipUnless(has_module("numpy"), "python3-numpy is not installed")
    def test_numpy(self):
        self.assertReplays(PYTHON, SCRIPTS / "numpy_seeds.py")

    @unittest.skipUnless(has_module("torch"), "python3-torch is not installed")
    def test_torch_data_loader(self):
        self.assertReplays(PYTHON, SCRIPTS / "data_loader.py")

    @needs_program("sqlite3")
    def test_sqlite(self):
        self.assertReplays("sqlite3", "-init", "/dev/null", ":memory:",
                           "create table t(a, b);"
                           "insert into t select random(), hex(randomblob(4)) from (select 1 union select 2);"
                           "insert into t values (strftime('%f', 'now'), datetime('now'));"
                           "select * from t")

    @needs_program("zstd")
    def test_zstd_with_threads(self):
        data = self.dir / "data"
        data.write_bytes(random.Random(1).randbytes(8 << 20) + bytes(8 << 20))
        packed = self.dir / "data.zst"
        self.checked(self.record_single("zstd", "-q", "-T3", "-B1M", data, "-o", packed))
        want = hashlib.sha256(packed.read_bytes()).hexdigest()
        packed.unlink()
        for i in range(REPLAYS):
            scratch = self.dir / f"scratch{i}"
            self.checked(self.replay(0, options=["--scratch", scratch]))
            written = [p for p in scratch.rglob("data.zst") if p.is_file()]
            self.assertEqual([hashlib.sha256(p.read_bytes()).hexdigest() for p in written], [want])
        self.assertFalse(packed.exists())


if __name__ == "__main__":
    harness.main()
