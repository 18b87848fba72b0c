"""docs/FORMAT.md is enough to read a trace: a reader written from it says what Deja's says.

usage: independent_reader_test.py TRACE_DUMP MAKE_SAMPLE_TRACE [RANK_FOLDER …]
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DUMP, MAKE = sys.argv[1], sys.argv[2]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


class IndependentReaderTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="deja-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def same(self, rank):
        code, ours, error = run(DUMP, rank)
        self.assertEqual(code, 0, error)
        code, theirs, error = run(sys.executable, os.path.join(HERE, "independent_reader.py"), rank)
        self.assertEqual(code, 0, error)
        self.assertEqual(theirs, ours)
        return ours

    def sample(self, *words):
        trace = os.path.join(self.folder, "sample.deja")
        self.assertEqual(run(MAKE, trace, *words)[0], 0)
        return os.path.join(trace, "rank-00000")

    def test_a_finished_rank(self):
        lines = self.same(self.sample())
        self.assertIn('"end":"clean"', lines[-1])
        self.assertGreater(sum('"kind":4' in line for line in lines), 3)
        self.assertGreater(sum('"payload":' in line for line in lines), 3)

    def test_an_unfinished_rank(self):
        self.assertIn('"end":"torn"', self.same(self.sample("unfinished"))[-1])

    def test_cut_anywhere(self):
        rank = self.sample("unfinished")
        path = os.path.join(rank, "events.deja")
        with open(path, "rb") as file:
            whole = file.read()
        for size in range(len(whole) // 2, len(whole), 151):
            with open(path, "wb") as file:
                file.write(whole[:size])
            self.same(rank)

    def test_damaged_anywhere(self):
        rank = self.sample("unfinished")
        for name, start in (("events.deja", 700), ("payloads.deja", 700)):
            path = os.path.join(rank, name)
            with open(path, "rb") as file:
                whole = file.read()
            for at in range(start, len(whole), 251):
                with open(path, "wb") as file:
                    file.write(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
                self.same(rank)
            with open(path, "wb") as file:
                file.write(whole)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
