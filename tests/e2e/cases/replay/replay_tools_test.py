"""`deja replay --profile`, `--coverage`, `--valgrind`, and under perf: the recorded end, and the output of the tool."""
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

SCRIPT = """\
import random

def draw(count):
    return [random.random() for _ in range(count)]

def never():
    return 1

print(sum(draw(1000)), flush=True)
raise ValueError("bad")
"""


class Tools(harness.DejaTest):
    def setUp(self):
        super().setUp()
        script = self.dir / "train.py"
        script.write_text(SCRIPT)
        self.recorded = self.record_single(sys.executable, script, cwd=self.dir)

    def under(self, *options, code=harness.EXIT_OK):
        run = self.checked(self.replay(0, options=options), code)
        if code == harness.EXIT_OK:
            self.assertIn("rank 0: exit 1, the same as recorded", run.stdout)
            self.assertIn(self.recorded.stdout.splitlines()[0], run.stdout, "it is given the recorded numbers")
        return run

    def test_a_profile(self):
        run = self.under("--profile")
        self.assertIn("deja: profile of the replay: the program's own functions, by cumulative time\n", run.stderr)
        self.assertRegex(run.stderr, r"(?m)^ +1 .*train\.py:3\(draw\)$")

    @unittest.skipUnless(importlib.util.find_spec("coverage"), "this Python has no module coverage: apt-get install python3-coverage")
    def test_coverage(self):
        run = self.under("--coverage")
        self.assertRegex(run.stderr, r"(?m)^train\.py +\d+ +1 +\d+% +7$")

    def test_tools_that_exclude_each_other_are_refused(self):
        self.assertIn("--coverage needs a replay without --profile",
                      self.under("--profile", "--coverage", code=harness.EXIT_USAGE).stderr)
        self.assertIn("--profile needs a replay without a debugger",
                      self.under("--profile", "--pdb", code=harness.EXIT_USAGE).stderr)


class Memcheck(harness.DejaTest):
    @unittest.skipUnless(shutil.which("valgrind"), "Valgrind is not installed: apt-get install valgrind")
    def test_memcheck(self):
        self.checked(self.record("replay_trainer", n=2))
        run = self.checked(self.replay(1, options=("--valgrind",)))
        self.assertRegex(run.stdout, r"rank 1: exit 0, the same as recorded; \d+ collectives served, \d+ digests compared, all equal")
        self.assertRegex(run.stderr, r"(?m)^==\d+== Command: .*/replay_trainer")
        self.assertRegex(run.stderr, r"(?m)^==\d+== ERROR SUMMARY: 0 errors")
        refused = self.checked(self.replay(1, options=("--profile",)), harness.EXIT_USAGE)
        self.assertIn("replaying: rank 1: --profile: ", refused.stderr)
        self.assertIn("replay_trainer is not Python", refused.stderr)


PERF = ("perf", "record", "-q", "-e", "cpu-clock", "-F", "10000")


def why_no_perf():
    """Empty: perf can sample here."""
    if not shutil.which("perf"):
        return "perf is not installed: apt-get install linux-perf"
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run([*PERF, "-o", folder + "/perf.data", "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"perf cannot sample here: {tried.stderr.strip()[:200]}"


class Perf(harness.DejaTest):
    """perf in front of the command follows it into the replayed rank."""

    def test_perf_in_front(self):
        if why := why_no_perf():
            self.skipTest(why)
        self.checked(self.record("replay_trainer", n=2))
        run = self.checked(self.command([*PERF, "-o", "perf.data", "--", harness.DEJA, "replay", self.trace_path(), "--rank", 1]))
        self.assertRegex(run.stdout, r"rank 1: exit 0, the same as recorded; \d+ collectives served, \d+ digests compared, all equal")
        report = self.checked(self.command(["perf", "report", "-i", "perf.data", "--stdio", "--sort", "dso"]))
        self.assertRegex(report.stdout, r"(?m)^ +\d+\.\d+% +libdeja_replay\.so")
        self.assertRegex(report.stdout, r"(?m)^ +\d+\.\d+% +replay_trainer")


OVERFLOW = """\
#include <cstdio>
#include <sys/random.h>
#include <vector>
int main() {
  unsigned char drawn = 0;
  if (getrandom(&drawn, 1, 0) != 1) return 2;
  std::vector<int> values(10, drawn);
  std::printf("drawn %d\\n", drawn);
  std::fflush(stdout);
  std::printf("behind the end %d\\n", values.data()[drawn % 2 + 16]);
}
"""


class Sanitizer(harness.DejaTest):
    """A build with AddressSanitizer takes what a build without it was given."""

    def build(self, name, *options):
        (self.dir / "overflow.cc").write_text(OVERFLOW)
        return self.command(["g++", "-g", "-O1", *options, self.dir / "overflow.cc", "-o", self.dir / name])

    @unittest.skipUnless(shutil.which("g++"), "g++ is not installed")
    def test_a_build_with_address_sanitizer(self):
        self.checked(self.build("plain"))
        built = self.build("sanitized", "-fsanitize=address")
        if built.code != 0:
            self.skipTest(f"g++ has no AddressSanitizer here: {built.stderr[-200:]}")
        recorded = self.checked(self.record_single(self.dir / "plain"))
        run = self.checked(self.replay(0, options=("--edited", "--program", self.dir / "sanitized")), harness.EXIT_FAILURE)
        self.assertEqual(run.stdout.splitlines()[0], recorded.stdout.splitlines()[0], "it is given the recorded byte")
        self.assertIn("ERROR: AddressSanitizer: heap-buffer-overflow", run.stderr)
        self.assertRegex(run.stderr, r"#0 0x[0-9a-f]+ in main \S*overflow\.cc:10")
        self.assertIn("rank 0: another end than the recorded one (exit 0): exit 1", run.stdout)


if __name__ == "__main__":
    harness.main()
