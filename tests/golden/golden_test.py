"""Traces of every version of the format, from 1.0 on, stay readable and say what they said when they were written.

Each folder vN holds `trace/`, a small recording (rank 0 finished, rank 1 torn) with every kind of event of its version.
Beside it is, for each rank, what it holds as tests/conformance/trace/trace_dump.cc prints it. The build of that version makes
them (golden_test.py --write), and they are never changed afterwards.

usage: golden_test.py TRACE_DUMP DEJA
       golden_test.py --write TRACE_DUMP MAKE_SAMPLE_TRACE VERSION
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parents[1] / "format" / "proto" / "trace.proto"
TORN_BYTES = 20  # cut off the events of rank 1


def dump(program, rank):
    return subprocess.run([program, rank], capture_output=True, text=True)


def write(program, make, version):
    folder = HERE / version
    if folder.exists():
        sys.exit(f"writing {folder}: it exists, and a golden trace never changes")
    subprocess.run([make, folder / "trace"], check=True)
    events = folder / "trace" / "rank-00001" / "events.deja"
    os.truncate(events, events.stat().st_size - TORN_BYTES)
    for rank in sorted((folder / "trace").iterdir()):
        (folder / f"{rank.name}.jsonl").write_text(dump(program, rank).stdout)


def versions():
    return sorted(path for path in HERE.glob("v*") if path.is_dir())


def body_fields():
    """Field numbers of the kinds of events in the schema."""
    body = re.search(r"oneof body \{(.*?)\n *\}", SCHEMA.read_text(), re.S).group(1)
    return {int(number) for number in re.findall(r"(?m)^ *\w+ \w+ = (\d+);", body)}


class GoldenTest(unittest.TestCase):
    def dumps(self):
        for version in versions():
            for rank in sorted((version / "trace").iterdir()):
                done = dump(DUMP, rank)
                self.assertEqual(done.returncode, 0, done.stderr)
                yield version, rank.name, done.stdout.splitlines(), (version / f"{rank.name}.jsonl").read_text().splitlines()

    def test_every_rank_says_what_it_said(self):
        ranks = 0
        for version, rank, now, then in self.dumps():
            with self.subTest(version=version, rank=rank):
                self.assertEqual(now, then)
                ranks += 1
        self.assertGreaterEqual(ranks, 2)

    def test_the_newest_trace_has_every_kind_of_event(self):
        kinds = {json.loads(line).get("kind") for version, rank, now, _ in self.dumps()
                 if version == versions()[-1] and rank == "rank-00000" for line in now} - {None}
        self.assertEqual(kinds, body_fields())

    def test_the_command_line_reads_them(self):
        for version in versions():
            done = subprocess.run([DEJA, "info", "--json", version / "trace"], capture_output=True, text=True)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            info = json.loads(done.stdout)
            self.assertEqual("v" + info["format"], version.name)
            self.assertIn("node-7", done.stdout)
            text = subprocess.run([DEJA, "info", version / "trace"], capture_output=True, text=True).stdout
            self.assertIn(f"format {info['format']}", text)

    def test_a_trace_from_before_1_0_is_refused_with_a_way_out(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "old.deja"
            shutil.copytree(versions()[0] / "trace", trace)
            for path in trace.rglob("*.deja"):
                with open(path, "r+b") as file:
                    file.write(b"DEJA\x01\r\n\x1a")
            for command in ["info"], ["show"], ["verify"], ["replay", "--rank", "0"]:
                done = subprocess.run([DEJA, *command, trace], capture_output=True, text=True)
                self.assertNotEqual(done.returncode, 0, command)
                self.assertIn("a trace of a format before 1.0; record again, or use the Deja that recorded it",
                              done.stdout + done.stderr, command)


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        write(*sys.argv[2:])
    else:
        DUMP, DEJA = sys.argv[1:]
        unittest.main(argv=sys.argv[:1], verbosity=2)
