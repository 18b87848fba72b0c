#!/usr/bin/env python3
"""`deja replay --process-checkpoint`: what it asks of criu and cuda-checkpoint, and what it says where they cannot.
The criu here is a stand-in."""
import os
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APP = "replay_checkpoints"

CRIU = """#!/bin/sh
echo "$@" >> {calls}
case "$1" in
check) {check} ;;
dump)
  shift
  while [ $# -gt 0 ]; do
    case "$1" in --tree) pid=$2 ;; --images-dir) images=$2 ;; esac
    shift
  done
  tr '\\0' '\\n' < /proc/$pid/environ | grep -a '^RANK=' > {seen}
  cat /proc/$pid/cmdline | tr '\\0' ' ' >> {seen}
  {dump}
  ;;
esac
"""


class ProcessCheckpoint(harness.DejaTest):
    def stand_in(self, check="echo Looks good.", dump="echo image > $images/pages-1.img; kill -9 $pid"):
        folder = self.dir / "bin"
        folder.mkdir(exist_ok=True)
        self.calls, self.seen = self.dir / "calls", self.dir / "seen"
        script = folder / "criu"
        script.write_text(CRIU.format(calls=self.calls, seen=self.seen, check=check, dump=dump))
        script.chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def setUp(self):
        self.checked(self.record(APP, ["--tell", "--steps", "12"], n=2))

    def make(self, *options, env=None):
        return self.deja("replay", self.trace_path(), "--process-checkpoint", self.dir / "image", *options, env=env)

    def assertNothingRuns(self, pid):
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)

    @unittest.skipIf(os.geteuid() != 0, "criu is for root")
    def test_dumps_the_program_at_the_given_place(self):
        run = self.checked(self.make("--rank", 1, "--until-step", 7, env=self.stand_in()))
        told = re.search(r"rank 1: process (\d+) at step 7 begins is in (\S+)$", run.stdout, re.MULTILINE)
        self.assertIsNotNone(told, f"\n{run}")
        pid, images = int(told.group(1)), told.group(2)
        self.assertEqual(images, f"{self.dir}/image/images")
        self.assertEqual(self.calls.read_text().splitlines(),
                         ["check", f"dump --tree {pid} --images-dir {images} --log-file dump.log --shell-job"])
        seen = self.seen.read_text()
        self.assertIn("RANK=1", seen)
        self.assertIn("--tell", seen)
        self.assertTrue((Path(images) / "pages-1.img").is_file())
        self.assertIn("rank 1 step 6:", run.stdout)
        self.assertNotIn("rank 1 step 7:", run.stdout)
        self.assertIn(f"criu restore --images-dir {images} --shell-job --restore-detached && touch {self.dir}/image/scratch/rank-00001/go-on",
                      run.stderr)
        self.assertNothingRuns(pid)

    @unittest.skipIf(os.geteuid() != 0, "criu is for root")
    def test_a_held_process_goes_on_as_recorded(self):
        """A dump that leaves the program running and lets it go on: it reaches its end."""
        go_on = f"touch {self.dir}/image/scratch/rank-00000/go-on; while kill -0 $pid && ! grep -q '\"exit\"' {self.dir}/image/scratch/rank-00000/report.jsonl; do sleep 0.05; done"
        run = self.checked(self.make("--rank", 0, "--until-seq", 5, env=self.stand_in(dump=go_on)))
        self.assertIn("at AllReduce #5 of comm 0 is in", run.stdout)
        self.assertIn("rank 0 step 11:", run.stdout)
        self.assertIn('"kind":"exit"', (self.dir / "image/scratch/rank-00000/report.jsonl").read_text())

    @unittest.skipIf(os.geteuid() != 0, "criu is for root")
    def test_a_dump_that_fails(self):
        dump = "echo '(00.1) Error (criu/x.c:1): no way' > $images/dump.log; echo $pid > {}; exit 1".format(self.dir / "pid")
        run = self.checked(self.make("--rank", 1, "--until-step", 7, env=self.stand_in(dump=dump)), harness.EXIT_FAILURE)
        self.assertIn("criu dump ended with 1: (00.1) Error (criu/x.c:1): no way; see ", run.stderr)
        self.assertNothingRuns(int((self.dir / "pid").read_text()))

    @unittest.skipIf(os.geteuid() != 0, "criu is for root")
    def test_a_place_that_does_not_come(self):
        run = self.checked(self.make("--rank", 1, "--until-step", 70, env=self.stand_in()), harness.EXIT_FAILURE)
        self.assertIn("it did not reach", run.stderr)

    @unittest.skipIf(os.geteuid() != 0, "criu is for root")
    def test_a_machine_that_cannot(self):
        check = "echo 'Error (criu/vdso.c:1): Unexpected rt vDSO area bounds' >&2; exit 1"
        run = self.checked(self.make("--rank", 1, "--until-step", 7, env=self.stand_in(check=check)), harness.EXIT_FAILURE)
        self.assertIn(f"`criu check` ends with 1 on Linux {os.uname().release}: Error (criu/vdso.c:1): Unexpected rt vDSO area bounds",
                      run.stderr)
        self.assertEqual(self.calls.read_text(), "check\n")
        self.assertFalse((self.dir / "image").exists())

    def test_without_criu(self):
        empty = self.dir / "empty"
        empty.mkdir()
        run = self.checked(self.make("--rank", 1, "--until-step", 7, env={"PATH": empty}), harness.EXIT_FAILURE)
        self.assertIn("criu is not in PATH", run.stderr)

    def test_mistakes(self):
        for options, words in ((["--rank", 1], "give --until-step or --until-seq"), (["--all", "--until-step", 3], "choose it with --rank"),
                               (["--rank", 1, "--until-step", 3, "--gdb"], "leave out --gdb"),
                               (["--rank", 1, "--until-step", 3, "--out", "x.deja"], "does not go with --out")):
            self.assertIn(words, self.checked(self.make(*options), harness.EXIT_USAGE).stderr)


if __name__ == "__main__":
    harness.main()
