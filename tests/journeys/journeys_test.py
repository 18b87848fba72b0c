"""What a new user types, on a terminal, from an installed Deja to the line of a bug: three programs.

Prints the commands and the seconds of each journey. DEJA_TORCH_PYTHON names the Python of the two that use torch.
"""
import shutil
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402
from installed import InstalledDeja  # noqa: E402
from terminal import Terminal  # noqa: E402
from torch_jobs import PYTHON, VERSION  # noqa: E402

PROGRAMS = ROOT / "examples" / "first"
MOST_COMMANDS = 4


class Journeys(InstalledDeja):
    @classmethod
    def setUpClass(cls):
        cls.installed = Path(harness.own_folder("deja-journeys-")) / "deja"
        harness.subprocess.run(["cmake", "--install", harness.BUILD, "--prefix", cls.installed], check=True,
                               stdout=harness.subprocess.DEVNULL)

    def setUp(self):
        self.use(self.installed)

    def terminal(self, *programs):
        for program in programs:
            shutil.copy(PROGRAMS / program, self.dir)
        return Terminal(self.dir, f"{self.prefix / 'bin'}:{Path(PYTHON).parent}:/usr/bin:/bin")

    def line_of_bug(self, program):
        lines = (PROGRAMS / program).read_text().splitlines()
        return next(n for n, line in enumerate(lines, 1) if "the bug" in line)

    def assertArrived(self, terminal, name):
        print(f"journey: {name}: {len(terminal.typed)} commands, {terminal.seconds():.0f} s", flush=True)
        for line in terminal.typed:
            print(f"    {line}", flush=True)
        terminal.close()
        self.assertLessEqual(len(terminal.typed), MOST_COMMANDS, terminal.typed)

    def test_a_nan_of_memory_that_was_never_written(self):
        built = ["sh", "-c", "c++ -g -O0 short_batch.cc $(pkg-config --cflags --libs deja-nccl-loopback) -o short_batch"]
        terminal = self.terminal("short_batch.cc")
        self.checked(self.command(built, env={"PKG_CONFIG_PATH": self.pkg_config_folder()}))
        said = terminal.type("deja record --loopback -n 4 --out run.deja -- ./short_batch")
        self.assertIn("rank 2: the mean is nan in step 30", said)
        terminal.type("deja replay run.deja --rank 2 --gdb")
        said = terminal.type("deja until nan")
        self.assertIn("a NaN goes into AllReduce #31", said)
        said = terminal.type("deja when-changed gradient")
        self.assertIn(f"short_batch.cc:{self.line_of_bug('short_batch.cc')}", said)
        self.assertArrived(terminal, "a NaN of memory that was never written")

    @unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
    def test_two_communicators_in_another_order(self):
        terminal = self.terminal("two_groups.py")
        command = f"deja record --loopback -n 3 --out run.deja -- {Path(PYTHON).name} two_groups.py"
        said = terminal.type(command, stop_at="step 12")
        self.assertRegex(said, r"rank 1: SIGTERM at two_groups\.py:\d+ in log, after c10d_allreduce #13 of comm 2")
        said = terminal.type("deja check run.deja")
        self.assertIn("ranks 0-1 wait for each other", said)
        self.assertRegex(said, rf"rank 1 is in AllReduce .* at two_groups\.py:\d+ in log \(from two_groups\.py:"
                               rf"{self.line_of_bug('two_groups.py')} in <module>\)")
        self.assertArrived(terminal, "two communicators in another order")

    @unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
    def test_a_bad_batch_from_a_worker(self):
        terminal = self.terminal("bad_batch.py")
        said = terminal.type(f"deja record --loopback -n 2 --out run.deja -- {Path(PYTHON).name} bad_batch.py")
        self.assertRegex(said, r"deja: rank 1: exit 1, IndexError: Target 10 is out of bounds")
        terminal.type("sed -i 's/return row, label/assert label < 10, (i, label); return row, label/' bad_batch.py")
        said = terminal.type("deja replay run.deja --rank 1 --edited")
        self.assertRegex(said, rf"bad_batch\.py\", line {self.line_of_bug('bad_batch.py') + 1}, in __getitem__")
        self.assertIn("AssertionError: (139, 10)", said)
        self.assertArrived(terminal, "a bad batch from a worker")


if __name__ == "__main__":
    unittest.main(verbosity=2)
