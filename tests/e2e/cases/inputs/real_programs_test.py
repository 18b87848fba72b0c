"""Programs of others, recorded and replayed as single processes. Each is nondeterministic by itself."""
import hashlib
import os
import random
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
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
    def assertReplaysTheSame(self, *command):
        self.assertReplaysThoughRandom(*command, replays=REPLAYS)

    @unittest.skipUnless(has_module("numpy"), "python3-numpy is not installed")
    def test_numpy(self):
        self.assertReplaysTheSame(PYTHON, SCRIPTS / "numpy_seeds.py")

    @needs_program("sqlite3")
    def test_sqlite(self):
        self.assertReplaysTheSame("sqlite3", "-init", "/dev/null", ":memory:",
                                  "create table t(a, b);"
                                  "insert into t select random(), hex(randomblob(4)) from (select 1 union select 2);"
                                  "insert into t values (strftime('%f', 'now'), datetime('now'));"
                                  "select * from t")

    @needs_program("sqlite3")
    def test_sqlite_with_a_data_base(self):
        """Whether the recording has digests or bytes; with bytes the data base may be gone."""
        base = self.dir / "data.db"
        self.checked(self.command(["sqlite3", base, "create table t(a integer primary key, b);"
                                   "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) "
                                   "insert into t select i, hex(i * i) from n"]))
        os.utime(base, (1700000000, 1700000000))
        for mode in ("full", "digest"):
            with self.subTest(mode):
                trace = f"{mode}.deja"
                run = self.checked(self.record_single(
                    "sqlite3", "-readonly", "-init", "/dev/null", base,
                    "select count(*), sum(length(b)) from t; select * from t order by random() limit 5",
                    options=["--inputs", mode], trace=trace))
                hidden = base.with_suffix(".hidden")
                if mode == "full":
                    base.rename(hidden)
                for _ in range(REPLAYS):
                    replayed = self.checked(self.replay(0, trace=trace))
                    self.assertEqual(harness.without_report(replayed.stdout), run.stdout)
                if mode == "full":
                    hidden.rename(base)
                    continue
                with open(base, "r+b") as f:  # a page in the middle of the table
                    f.seek(base.stat().st_size // 2)
                    f.write(b"changed")
                changed = self.checked(self.replay(0, trace=trace), harness.EXIT_DIVERGED)
                self.assertIn("data.db", changed.stdout + changed.stderr)

    @unittest.skipUnless(has_module("numpy"), "python3-numpy is not installed")
    def test_numpy_reads_arrays(self):
        for mode in ("digest", "full"):
            with self.subTest(mode):
                folder = self.dir / mode
                folder.mkdir()
                trace = f"{mode}-arrays.deja"
                run = self.checked(self.record_single(PYTHON, SCRIPTS / "numpy_arrays.py", folder, "make",
                                                      options=["--inputs", "off"], trace=f"{mode}-make.deja"))
                run = self.checked(self.record_single(PYTHON, SCRIPTS / "numpy_arrays.py", folder, "read",
                                                      options=["--inputs", mode], trace=trace))
                if mode == "full":
                    shutil.rmtree(folder)
                for _ in range(REPLAYS):
                    replayed = self.checked(self.replay(0, trace=trace))
                    self.assertEqual(harness.without_report(replayed.stdout), run.stdout)
                if mode == "digest":
                    with open(folder / "mapped.npy", "r+b") as f:
                        f.seek(-1, os.SEEK_END)
                        f.write(b"\x55")
                    changed = self.checked(self.replay(0, trace=trace), harness.EXIT_DIVERGED)
                    self.assertIn("mapped.npy differs in bytes", changed.stdout + changed.stderr)

    @needs_program("zstd")
    def test_zstd_without_its_input(self):
        data = self.dir / "data"
        data.write_bytes(random.Random(2).randbytes(3 << 20) + bytes(5 << 20))
        want = hashlib.sha256(data.read_bytes()).hexdigest()
        packed = self.dir / "data.zst"
        self.checked(self.record_single("zstd", "-q", "-T2", "-B1M", data, "-o", packed, options=["--inputs", "full"]))
        packed.unlink()
        data.unlink()
        scratch = self.dir / "scratch"
        self.checked(self.replay(0, options=["--scratch", scratch]))
        written = [p for p in scratch.rglob("data.zst") if p.is_file()]
        self.assertEqual(len(written), 1)
        unpacked = subprocess.run(["zstd", "-q", "-d", "-c", written[0]], capture_output=True, check=True).stdout
        self.assertEqual(hashlib.sha256(unpacked).hexdigest(), want)

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
