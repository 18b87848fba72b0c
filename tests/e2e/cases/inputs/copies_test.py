"""Bytes that go from descriptor to descriptor without the program's memory (sendfile, splice, tee, vmsplice,
copy_file_range). They are recorded, and there in a replay without the file, the server or the other end of the pipe."""
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

PEERS = Path(__file__).resolve().parents[2] / "apps" / "connections" / "peers.py"
REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
FULL = ("--inputs", "full")


class CopiesTest(harness.DejaTest):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "data"
        self.data.mkdir()
        self.file = self.data / "data"
        self.file.write_text("".join(os.urandom(50).hex()[:99] + "\n" for _ in range(4000)), encoding="ascii")
        os.utime(self.file, (1700000000, 1700000000))

    def peer(self, *arguments):
        process = self.start([sys.executable, PEERS, *arguments])
        self.addCleanup(self.end, process)
        return process.stdout.readline().decode().strip()

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def recorded(self, *ways, options=(), **kwargs):
        return self.checked(self.deja("record", "--single", "--out", self.trace_path(), *options, "--",
                                      harness.app("input_copies"), self.data, *ways, **kwargs))

    def assertReplays(self, run, *options):
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0, options=options))
            self.assertEqual(harness.without_report(again.stdout), run.stdout)

    def ranges(self):
        return [file for file in self.info_json()["ranks"][0]["inputs"]["files"] if file["path"] == str(self.file)]


class Files(CopiesTest):
    # Bytes of the file that each way takes.
    WAYS = {"sendfile": 100004, "pipe": 400000, "splice": 36000, "range": 50000}

    def test_copied_bytes_are_attributed(self):
        for way, size in self.WAYS.items():
            with self.subTest(way):
                plain = self.command([harness.app("input_copies"), self.data, way])
                (self.data / "copy").unlink(missing_ok=True)
                run = self.recorded(way)
                self.assertEqual(run.stdout, plain.stdout)
                self.assertEqual([file["read"] for file in self.ranges()], [size])
                self.assertReplays(run)
                shutil.rmtree(self.trace_path())

    def test_a_replay_does_not_need_the_file(self):
        run = self.recorded(*self.WAYS, options=FULL)
        shutil.rmtree(self.data)
        self.assertReplays(run)

    def test_a_changed_byte_is_named(self):
        for way, at in (("sendfile", 60000), ("splice", 110000), ("range", 249999)):
            with self.subTest(way):
                self.recorded(way)
                content = self.file.read_bytes()
                self.file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])
                again = self.checked(self.replay(0), harness.EXIT_DIVERGED)
                self.assertIn(f"the file {self.file} differs in bytes", again.stdout + again.stderr)
                self.file.write_bytes(content)
                os.utime(self.file, (1700000000, 1700000000))
                shutil.rmtree(self.trace_path())

    def test_commands_and_python(self):
        code = ("import os, shutil, sys\nos.chdir(sys.argv[1])\nshutil.copyfile('data', 'second')\n"
                "with open('data', 'rb') as a, open('third', 'wb') as b:\n"
                "    print(os.copy_file_range(a.fileno(), b.fileno(), 5000), a.read(4))\n"
                "os.system('cp data fourth; cat data > fifth; head -c 7000 data | tail -c 50 > sixth')\n"
                "for name in 'second', 'third', 'fourth', 'fifth', 'sixth':\n    print(hash(open(name, 'rb').read()))\n")
        run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), *FULL, "--", sys.executable, "-c",
                                     code, self.data))
        shutil.rmtree(self.data)
        self.assertReplays(run)


class Connections(CopiesTest):
    def test_standard_input(self):
        source = subprocess.Popen(["sh", "-c", f"printf abc; sleep 0.2; cat {self.file}"], stdout=subprocess.PIPE)
        run = self.recorded("stdin", stdin=source.stdout)
        source.stdout.close()
        source.wait()
        self.assertIn("stdin 400000 bytes", run.stdout)
        self.assertReplays(run)

    def test_a_server(self):
        run = self.recorded("socket", self.peer("store"), options=FULL)
        shutil.rmtree(self.data)
        self.assertReplays(run)

    def test_other_bytes_are_reported(self):
        self.recorded("socket", self.peer("store"))
        content = self.file.read_bytes()
        self.file.write_bytes(content[:150] + b"x" + content[151:])
        again = self.replay(0, options=["--on-divergence", "warn"])
        self.assertIn("what the program sends differs from the recording in bytes 100 to 199", again.stderr)

    def test_fifos(self):
        self.peer("fifos", "talk", self.data)
        run = self.recorded("fifo")
        self.assertIn("question: ", run.stdout)
        for name in ("in", "out"):
            (self.data / name).unlink()
        self.assertReplays(run)

    def test_commands_of_the_system(self):
        """`cat`, which splices where it can."""
        source = subprocess.Popen(["cat", self.file], stdout=subprocess.PIPE)
        run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", "bash", "-c",
                                     "head -c 1000 | md5sum; cat | md5sum", stdin=source.stdout))
        source.stdout.close()
        source.wait()
        self.assertReplays(run)


if __name__ == "__main__":
    harness.main()
