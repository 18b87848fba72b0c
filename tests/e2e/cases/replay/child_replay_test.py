"""deja replay --child: one process that a rank has made, shown and judged alone, and in gdb."""
import re
import shutil
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

SPAWNED = r"""
import multiprocessing, os

def look(queue):
    drawn = os.urandom(4).hex()
    print("in the child", drawn, flush=True)
    queue.put(drawn)

if __name__ == "__main__":
    for method in "fork", "spawn":
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=look, args=(queue,))
        process.start()
        print(method, queue.get(), process.pid, flush=True)
        process.join()
"""

ENDS = {"0/1": "exit 3", "0/2": "exit 4", "0/3": "killed by SIGKILL", "0/5": "SIGSEGV at workers.cc", "0/6": "exit 6",
        "0/6/0/1": "exit 5", "0/11+1": "exit 7", "0.1/1": "exit 9"}


class ChildReplay(harness.DejaTest):
    def lines(self, run, pattern):
        return [line for line in run.stdout.splitlines() if re.match(pattern, line)]

    def test_its_output_and_its_end_alone(self):
        run = self.checked(self.record("workers", n=1))
        for name, end in ENDS.items():
            with self.subTest(child=name):
                again = self.checked(self.replay(0, options=["--child", name]))
                *printed, verdict = again.stdout.splitlines()
                self.assertIn(f"rank 0, child {name}: ", verdict)
                self.assertIn(end, verdict)
                self.assertNotIn("diverged", verdict)
                wanted = self.lines(run, "grandchild") if name == "0/6" else []
                if name == "0/11+1":
                    self.assertEqual(len(printed), 3, str(again))
                    self.assertIn("\n".join(printed), run.stdout)
                else:
                    self.assertEqual(printed, wanted, str(again))

    def test_a_child_of_another_rank(self):
        self.checked(self.record("workers", n=2))
        again = self.checked(self.replay(1, options=["--child", "0/1", "--json"]))
        told = again.json()["ranks"][0]
        self.assertEqual((told["rank"], told["child"], told["verdict"]), (1, "0/1", "same"))

    def test_a_child_of_a_forked_rank(self):
        self.checked(self.deja("record", "--out", self.trace_path(), "--", harness.app("forked_ranks")))
        children = [child["name"] for child in self.info_json()["ranks"][1]["children"]]
        again = self.checked(self.replay(1, options=["--child", children[0]]))
        self.assertRegex(again.stdout, r"\Arank 1 has \d+\nrank 1, child \S+: exit 0, the same as recorded")

    def test_one_that_is_not_there(self):
        self.checked(self.record("workers", n=1))
        unknown = self.checked(self.replay(0, options=["--child", "0/99"]), harness.EXIT_FAILURE)
        self.assertIn("rank 0 has no child 0/99", unknown.stderr)
        self.assertIn("0/2", unknown.stderr)
        all_ranks = self.deja("replay", self.trace_path(), "--all", "--child", "0/1")
        self.checked(all_ranks, harness.EXIT_USAGE)

    def test_one_that_goes_another_way(self):
        switch = self.dir / "switch"
        switch.touch()
        script = (f"import os\npid = os.fork()\nif pid == 0: os._exit(0 if os.access('{switch}', os.F_OK) else 5)\n"
                  "print(os.waitpid(pid, 0)[1])\n")
        self.checked(self.record_single(sys.executable, "-c", script))
        switch.unlink()
        again = self.checked(self.replay(0, options=["--child", "0/1"]), harness.EXIT_DIVERGED)
        self.assertRegex(again.stdout, r"\Arank 0, child 0/1: exit 5; the recorded run: exit 0")

    def gdb(self, child, *commands):
        options = [word for command in commands for word in ("--gdb-command", command)]
        run = self.checked(self.replay(0, options=["--child", child, "--gdb", *options]))
        self.assertNotIn("Traceback", run.stderr, f"\n{run}")
        self.assertNotIn("Python Exception", run.stderr, f"\n{run}")
        return run

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_stops_in_it(self):
        self.checked(self.record("workers", n=1))
        run = self.gdb("0/6", "break Say", "run", "bt", "deja where", "run", "deja until end", "deja where")
        self.assertEqual(len(re.findall(r"Breakpoint 1.*, .*Say \(", run.stdout)), 2, f"\n{run}")
        self.assertIn("deja: rank 0, child 0/6, last call: no call yet", run.stdout)
        self.assertIn("the recording ends with: exit 6", run.stdout)
        self.assertNotIn("exit: process", run.stdout)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_takes_no_process_that_is_none_of_the_replay_s(self):
        """The replayed program can write where the child's number is; a thread here does so in its place."""
        script = "import os\npid = os.fork()\nif pid == 0: os._exit(len(os.urandom(3)))\nos.waitpid(pid, 0)\n"
        self.checked(self.record_single(sys.executable, "-c", script))
        scratch, other = self.dir / "scratch", self.start(["sleep", "600"])
        ended = threading.Event()

        def lie():
            while not ended.wait(0.005):
                for folder in scratch.rglob("*"):
                    if folder.is_dir() and not (folder / "waits-for-debugger").exists():
                        (folder / ".lie").write_text(f"{other.pid}\n")
                        (folder / ".lie").rename(folder / "waits-for-debugger")

        thread = threading.Thread(target=lie)
        thread.start()
        try:
            options = ["--child", "0/1", "--gdb", "--scratch", scratch, "--gdb-command", "run", "--gdb-command", "info inferiors"]
            run = self.checked(self.replay(0, options=options))
        finally:
            ended.set()
            thread.join()
        self.assertIsNone(other.poll(), "another process of the user's was debugged, and ended with gdb")
        other.kill()
        other.wait()
        self.assertNotIn(f"process {other.pid}", run.stdout)
        self.assertTrue(list(scratch.rglob("waits-for-debugger")), f"no process waited\n{run}")

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_stops_in_an_exec(self):
        self.checked(self.record("workers", n=1))
        run = self.gdb("0/14+1", "break write", "run", "delete", "deja until end")
        self.assertIn("deja: rank 0, child 0/14+1, ", run.stdout)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_stops_in_processes_of_python(self):
        script = self.dir / "script.py"
        script.write_text(SPAWNED)
        recorded = self.checked(self.record_single(sys.executable, script))
        drawn = re.findall("in the child (.*)", recorded.stdout)
        names = [child["name"] for child in self.info_json()["ranks"][0]["children"]]
        forked, spawned = names[0], next(name for name in reversed(names) if name.endswith("+1"))
        for child, value in (forked, drawn[0]), (spawned, drawn[1]):
            run = self.gdb(child, "break getrandom", "run", "delete", "continue")
            self.assertRegex(run.stdout, r"Breakpoint 1.*, getrandom \(", f"\n{run}")
            said = re.sub(r"\[New Thread .*?\]\n", "", run.stdout)  # in the middle of what the program prints
            self.assertIn(f"in the child {value}", said, f"\n{run}")


if __name__ == "__main__":
    harness.main()
