"""Processes that have one open file together, by a fork: in a replay each reads what it read.

DEJA_REPLAYS says how often each recording is replayed (default 3).
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
PYTHON = Path(__file__).resolve().parents[2] / "apps" / "python" / "shared_file.py"


class SharedFiles(harness.DejaTest):
    def file(self):
        path = self.dir / "data"
        path.write_text("".join(f"record {i * 7919 % 10000000:08}\n" for i in range(600)))
        return path

    def assertReadsAgain(self, *command, options=()):
        self.checked(self.command(command))
        run = self.checked(self.record_single(*command, options=options))
        self.assertEqual(len(run.stdout.splitlines()), len(set(run.stdout.splitlines())), str(run))
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
        return run

    def test_records(self):
        self.assertReadsAgain(harness.app("shared_file"), "records", self.file())

    def test_records_from_the_trace(self):
        path = self.file()
        program = harness.app("shared_file")
        run = self.checked(self.record_single(program, "records", path, options=["--inputs", "full"]))
        path.unlink()
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_a_file_of_the_runs_own(self):
        self.assertReadsAgain(harness.app("shared_file"), "records", self.dir / "made", "--own")

    def test_lines_of_a_stream(self):
        self.assertReadsAgain(harness.app("shared_file"), "lines", self.file())

    def test_relative_seeks(self):
        self.assertReadsAgain(harness.app("shared_file"), "steps", self.file())

    def test_another_process_goes_elsewhere_between_a_seek_and_a_read(self):
        self.assertReadsAgain(harness.app("shared_file"), "places", self.file())

    def test_a_file_object_of_python(self):
        self.assertReadsAgain(sys.executable, PYTHON, self.file())

    def test_lines_that_they_write(self):
        path = self.dir / "log"
        command = harness.app("shared_file"), "writes", path
        self.checked(self.command(command))
        path.unlink()
        run = self.checked(self.record_single(*command))
        self.assertRegex(run.stdout, "all: ")
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_where_reads_were_is_shown(self):
        self.checked(self.record_single(harness.app("shared_file"), "records", self.file()))
        moves = self.show_json("--child", "0/1", "--call", "lseek")
        self.assertTrue(all(move["result"] % 16 == 0 for move in moves), moves)
        self.assertGreater(len(moves), 10)


if __name__ == "__main__":
    harness.main()
