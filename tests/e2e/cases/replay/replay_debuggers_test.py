"""Debuggers other than a terminal's gdb: its machine interface as VS Code uses it, gdbserver, and one that attaches
itself."""
import json
import re
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

def message(process):
    """The first line of standard error with `next:`."""
    for line in process.stderr:
        text = line.decode()
        if "next:" in text:
            return text
    raise AssertionError("no line says what comes next")


class Debuggers(harness.DejaTest):
    def setUp(self):
        super().setUp()
        self.checked(self.record("replay_trainer", n=2))

    def start_replay(self, *options):
        return self.start([harness.DEJA, "replay", self.trace_path(), "--rank", "1", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def gdb(self, *words):
        return self.command(["gdb", "-nx", "-batch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_a_debugger_attaches_itself_before_main(self):
        replay = self.start_replay("--wait")
        told = message(replay)
        pid = re.search(r"rank 1: process (\d+) waits before main", told)[1]
        seen = self.gdb("-p", pid, "-ex", "break main", "-ex", "continue", "-ex", "delete", "-ex", "continue")
        self.assertRegex(seen.stdout, r"Breakpoint 1.*, main \(")
        out, err = replay.communicate(timeout=harness.DEFAULT_TIMEOUT)
        self.assertEqual(replay.returncode, 0, (out, err, str(seen)))
        self.assertIn(b"rank 1: exit 0, the same as recorded", out)

    @unittest.skipUnless(shutil.which("gdbserver"), "gdbserver is not installed: apt-get install gdbserver")
    def test_gdbserver(self):
        address = f"localhost:{harness.free_port()}"
        replay = self.start_replay("--gdbserver", address)
        self.assertIn(f"gdbserver waits at {address}", message(replay))
        for _ in range(100):
            seen = self.gdb(harness.app("replay_trainer"), "-ex", f"target remote {address}", "-ex", "break main",
                            "-ex", "continue", "-ex", "delete", "-ex", "continue")
            if "Connection refused" not in seen.stderr:
                break
            time.sleep(0.1)
        self.assertRegex(seen.stdout, r"Breakpoint 1, main \(", str(seen))
        self.assertIn("exited normally", seen.stdout)
        replay.communicate(timeout=harness.DEFAULT_TIMEOUT)
        self.assertEqual(replay.returncode, 0)

    def test_the_configuration_of_vs_code_drives_gdb(self):
        """Its debugger starts what the configuration names, with --interpreter=mi, and talks MI."""
        launch = self.dir / ".vscode" / "launch.json"
        launch.parent.mkdir()
        launch.write_text('{"version": "0.2.0", "configurations": [{"name": "mine", "type": "python"}]}')
        for _ in range(2):
            written = self.checked(self.deja("replay", self.trace_path(), "--rank", 1, "--vscode", cwd=self.dir))
            self.assertIn(f'{launch}: "Deja: rank 1 of run.deja"', written.stdout)
        mine, ours = json.loads(launch.read_text())["configurations"]
        self.assertEqual(mine["name"], "mine")
        self.assertEqual((ours["type"], ours["MIMode"], ours["program"]),
                         ("cppdbg", "gdb", str(harness.app("replay_trainer"))))
        talk = self.dir / "talk.txt"
        talk.write_text('-gdb-set mi-async off\n1-break-insert -f main\n2-exec-run\n3-interpreter-exec console "deja until seq 6"\n'
                        '4-interpreter-exec console "deja where"\n5-gdb-exit\n')
        with open(talk, encoding="utf-8") as stdin:
            run = self.command([ours["miDebuggerPath"], "--interpreter=mi"], stdin=stdin,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertRegex(run.stdout, r'(?m)^1\^done,bkpt=\{number="1"', str(run))
        self.assertRegex(run.stdout, r"(?m)^2\^running")
        self.assertIn('*stopped,reason="breakpoint-hit"', run.stdout)
        self.assertIn("last call: ", run.stdout)
        self.assertIn("#6 of comm 0", run.stdout)

    def test_a_launch_file_with_comments_stays(self):
        launch = self.dir / ".vscode" / "launch.json"
        launch.parent.mkdir()
        launch.write_text('// mine\n{"configurations": []}')
        refused = self.deja("replay", self.trace_path(), "--rank", 1, "--vscode", cwd=self.dir)
        self.assertEqual(refused.code, harness.EXIT_FAILURE, str(refused))
        self.assertIn("the file has comments or is no JSON object, and stays as it is", refused.stderr)
        self.assertIn('"miDebuggerPath"', refused.stderr)
        self.assertEqual(launch.read_text(), '// mine\n{"configurations": []}')

    def test_another_debugger_and_its_options(self):
        run = self.checked(self.deja("replay", self.trace_path(), "--rank", 1, "--gdb", "--debugger", shutil.which("gdb"),
                                     "--debugger-args", "-nx -ex 'echo of mine'", "--gdb-command", "deja until seq 6"))
        self.assertIn("of mine", run.stdout)
        self.assertIn("#6 of comm 0", run.stdout)
        missing = self.deja("replay", self.trace_path(), "--rank", 1, "--gdb", "--debugger", "nogdb")
        self.assertEqual(missing.code, harness.EXIT_FAILURE, str(missing))
        self.assertIn("starting: nogdb: it cannot be run; install it", missing.stderr)

    def test_contradictions_are_refused(self):
        for options, text in ((("--wait", "--gdb"), "--wait: it does not go with --gdb"),
                              (("--interpreter", "mi3"), "--debugger, --debugger-args, --interpreter: they are for gdb; give --gdb")):
            refused = self.deja("replay", self.trace_path(), "--rank", 1, *options)
            self.assertEqual(refused.code, harness.EXIT_USAGE, str(refused))
            self.assertIn(text, refused.stderr)


if __name__ == "__main__":
    harness.main()
