"""`deja replay --debugpy`: an editor's conversation with a rank of Python, and a replay that does not notice it.

DEJA_TORCH_PYTHON names the Python that has debugpy."""
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import dap  # noqa: E402
import harness  # noqa: E402

SCRIPT = """\
import os, tempfile, multiprocessing.process, random, subprocess, sys, threading, time

def work(results):
    results.append(random.random())
    print(threading.current_thread().name, flush=True)

def check(step, value):
    drawn = random.random()
    began = time.time()
    if value > 100:
        raise ValueError(f"step {step} is bad")
    return drawn, began

def main():
    results = []
    thread = threading.Thread(target=work, args=(results,))
    thread.start()
    thread.join()
    print(results, os.urandom(4).hex(), open(os.devnull).fileno(), sorted(os.environ) == sorted(dict(os.environ)))
    if os.fork() == 0:
        check(-1, 1)
        print("child", random.random(), flush=True)
        os._exit(0)
    os.wait()
    subprocess.run([sys.executable, "-c", "print('other')"], check=True)
    for step in range(4):
        print(check(step, step if step < 3 else 1000), time.time(), flush=True)

main()
"""
PYTHON = os.environ.get("DEJA_TORCH_PYTHON", sys.executable)
HAS_DEBUGPY = subprocess.run([PYTHON, "-c", "import debugpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0
MISSING = f"{PYTHON} has no module debugpy: pip install debugpy; DEJA_TORCH_PYTHON names another Python"


class Debugpy(harness.DejaTest):
    def setUp(self):
        super().setUp()
        self.script = self.dir / "train.py"
        self.script.write_text(SCRIPT)
        self.recorded = self.checked(self.record_single(PYTHON, self.script, cwd=self.dir), code=1)

    def start_replay(self, *options):
        """The process, and a client of its port."""
        replay = self.start([harness.DEJA, "replay", self.trace_path(), "--debugpy", "0", *options],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(replay.kill)  # it waits for an editor as long as it takes
        for line in replay.stderr:
            found = re.search(rb"waits before its first line for an editor at localhost:(\d+)", line)
            if found:
                return replay, dap.Client(int(found[1]))
        raise AssertionError("no line says where the rank waits")

    @unittest.skipUnless(HAS_DEBUGPY, MISSING)
    def test_a_conversation(self):
        replay, editor = self.start_replay()
        editor.begin({self.script: [10]}, filters=["uncaught"])
        drawn = []
        for step in range(4):
            stopped = editor.event("stopped")
            self.assertEqual(stopped["reason"], "breakpoint")
            frames = editor.frames(stopped["threadId"])
            self.assertEqual([(frame["name"], frame["line"]) for frame in frames],
                             [("check", 10), ("main", 27), ("<module>", 29)])
            self.assertEqual(frames[0]["source"]["path"], str(self.script))
            self.assertEqual(editor.variables(frames[0])["step"], str(step))
            # What the user asks for is no input of the program.
            asked = editor.ask("evaluate", expression="time.time(), os.urandom(8), drawn",
                               frameId=frames[0]["id"], context="repl")
            drawn.append(editor.variables(frames[0])["drawn"])
            self.assertIn(drawn[-1], asked["result"])
            editor.ask("continue", threadId=stopped["threadId"])
        stopped = editor.event("stopped")
        self.assertEqual(stopped["reason"], "exception")
        self.assertIn("step 3 is bad", editor.ask("exceptionInfo", threadId=stopped["threadId"])["description"])
        frames = editor.frames(stopped["threadId"])
        self.assertEqual(editor.variables(frames[0])["value"], "1000")
        editor.ask("continue", threadId=stopped["threadId"])
        out, err = replay.communicate(timeout=harness.DEFAULT_TIMEOUT)
        editor.close()
        out = out.decode()
        self.assertEqual(replay.returncode, harness.EXIT_OK, (out, err))
        self.assertIn("rank 0: exit 1, the same as recorded", out)
        self.assertEqual(harness.without_report(out), self.recorded.stdout)
        for value in drawn[:3]:
            self.assertIn(f"({value}, ", out)

    @unittest.skipUnless(HAS_DEBUGPY, MISSING)
    def test_an_editor_that_leaves(self):
        replay, editor = self.start_replay()
        editor.begin({self.script: [10]})
        editor.event("stopped")
        editor.ask("disconnect", terminateDebuggee=False)
        editor.close()
        out, err = replay.communicate(timeout=harness.DEFAULT_TIMEOUT)
        self.assertEqual(replay.returncode, harness.EXIT_OK, (out, err))
        self.assertIn(b"rank 0: exit 1, the same as recorded", out)

    def test_a_python_without_debugpy(self):
        hidden = self.dir / "hidden"
        hidden.mkdir()
        (hidden / "debugpy.py").write_text("raise ImportError('No module named debugpy')\n")
        self.checked(self.record_single(PYTHON, self.script, trace="bare.deja", cwd=self.dir,
                                        env={"PYTHONPATH": str(hidden)}), code=1)
        run = self.checked(self.replay(0, trace="bare.deja", options=("--debugpy", "0")), harness.EXIT_FAILURE)
        self.assertRegex(run.stderr, "deja: debugpy: this Python has no module debugpy .*; next: .* -m pip install debugpy")
        self.assertNotIn("as recorded", run.stdout)

    def test_the_configuration_of_vs_code(self):
        written = self.checked(self.deja("replay", self.trace_path(), "--vscode", cwd=self.dir))
        cpp, python = json.loads((self.dir / ".vscode" / "launch.json").read_text())["configurations"]
        self.assertEqual(cpp["type"], "cppdbg")
        self.assertEqual((python["type"], python["request"], python["connect"]),
                         ("debugpy", "attach", {"host": "localhost", "port": 5678}))
        self.assertIn(f'"{python["name"]}"', written.stdout)
        self.assertIn(f"deja replay {self.trace_path()} --rank 0 --debugpy 5678", written.stdout)

    def test_unusable_options_are_refused(self):
        for options, text in ((("--debugpy", "0", "--pdb"), "it does not go with --"),
                              (("--debugpy", "0", "--profile"), "--profile needs a replay without a debugger")):
            refused = self.checked(self.replay(0, options=options), harness.EXIT_USAGE)
            self.assertIn(text, refused.stderr)
        self.checked(self.record_single("/bin/true", trace="true.deja"))
        refused = self.checked(self.replay(0, trace="true.deja", options=("--debugpy", "0")), harness.EXIT_USAGE)
        self.assertRegex(refused.stderr, "replaying: rank 0: --debugpy: .*true is not Python")


if __name__ == "__main__":
    harness.main()
