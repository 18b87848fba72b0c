"""Traces of every version of the format stay readable, and say the same as on the day they were written.

Each folder vN holds `trace/`, a small recording (rank 0 finished, rank 1 torn), and for each rank what it holds as
tests/conformance/trace/trace_dump.cc prints it. They are made by the build of that version
(`make_sample_trace`, the last 20 bytes of rank 1's events cut off) and never changed afterwards.

usage: golden_test.py TRACE_DUMP DEJA
"""
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DUMP, DEJA = sys.argv[1], sys.argv[2]


def versions():
    return sorted(name for name in os.listdir(HERE) if name.startswith("v"))


class GoldenTest(unittest.TestCase):
    def dumps(self):
        for version in versions():
            trace = os.path.join(HERE, version, "trace")
            for rank in sorted(os.listdir(trace)):
                done = subprocess.run([DUMP, os.path.join(trace, rank)], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(os.path.join(HERE, version, rank + ".jsonl"), encoding="utf-8") as file:
                    yield version, rank, done.stdout.splitlines(), file.read().splitlines()

    def test_every_rank_says_what_it_said(self):
        ranks = 0
        for version, rank, now, then in self.dumps():
            with self.subTest(version=version, rank=rank):
                self.assertEqual(now, then)
                ranks += 1
        self.assertGreaterEqual(ranks, 2)

    def test_the_traces_have_every_kind_of_event(self):
        for version, rank, now, _ in self.dumps():
            if rank == "rank-00000":
                kinds = {json.loads(line).get("kind") for line in now} - {None}
                self.assertGreaterEqual(len(kinds), 17, version)

    def test_the_command_line_reads_them(self):
        for version in versions():
            done = subprocess.run([DEJA, "info", "--json", os.path.join(HERE, version, "trace")],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            self.assertIn("node-7", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
