"""Scripted gdb sessions on a replay: positions, stops, tensors and stacks."""
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Gdb(harness.DejaTest):
    def gdb(self, *commands, rank=2, trace="run.deja", program=()):
        options = [word for command in commands for word in ("--gdb-command", command)]
        run = self.deja("replay", self.trace_path(trace), "--rank", rank, "--gdb", *options,
                        *(["--", *program] if program else []))
        self.assertNotIn("Traceback", run.stderr, f"\n{run}")
        self.assertNotIn("Python Exception", run.stderr, f"\n{run}")
        return run

    def test_stops_at_operations_and_steps(self):
        self.checked(self.record("replay_trainer"))
        run = self.checked(self.gdb("deja until seq 9", "deja where", "deja next", "deja until step 5", "deja where",
                                    "deja until divergence", "deja where"))
        self.assertIn("deja: Recv #9 of comm 0", run.stdout)
        self.assertIn("rank 2, step 1, last call: Recv #9 of comm 0", run.stdout)
        self.assertIn("deja: AllReduce #2 of comm 1", run.stdout)
        self.assertIn("deja: step 5 begins", run.stdout)
        there_is_none = run.stdout.split("deja: the program ends with exit 0; recorded: exit 0\n")[1]
        self.assertIn("deja: rank 2, step 19, last call: ", there_is_none)
        self.assertIn("the recording ends with: exit 0", run.stdout)
        self.assertIn("trainer.cc:", run.stdout)

    def test_a_number_on_one_communicator(self):
        self.checked(self.record("replay_trainer"))
        run = self.checked(self.gdb("deja until seq 9 comm 1"))
        self.assertIn("deja: AllReduce #9 of comm 1", run.stdout)
        self.assertNotIn("#9 of comm 0", run.stdout)

    def test_shows_tensors_live_beside_recorded(self):
        self.checked(self.record("replay_trainer"))
        run = self.gdb("deja until seq 6", "deja tensor send 4", "deja tensor recv 4", "deja tensor gradient 2",
                       "deja tensor nothing")
        self.assertIn("send: 1000 x float32", run.stdout)
        self.assertIn("recv: 1000 x float32", run.stdout)
        self.assertIn("all elements are equal", run.stdout)
        self.assertIn("no tensor 'nothing'", run.stderr)

    def test_stops_at_a_divergence_with_the_element(self):
        self.checked(self.record("replay_trainer"))
        program = (harness.app("replay_trainer"), "--flip-step", "3", "--flip-index", "5")
        run = self.gdb("deja until divergence", "deja recorded-stack", program=program)
        self.assertRegex(run.stdout, r"deja: divergence at step 3, deja_tensor: snapshot gradient differs .* at element 5 of")
        self.assertIn("recorded, the current call:", run.stdout)

    def test_a_crash_in_gdb_has_the_recorded_stack_beside_it(self):
        self.record("replay_trainer", ["--fault", "crash"])
        run = self.gdb("run", "deja where", "deja recorded-stack", "bt 1")
        self.assertIn("SIGSEGV", run.stdout)
        self.assertIn("the recording ends with: SIGSEGV", run.stdout)
        recorded, live = run.stdout.split("recorded, the recorded end", 1)[1].split("live:", 1)
        self.assertIn("trainer.cc:", recorded.splitlines()[1])
        self.assertEqual(recorded.splitlines()[1].split("  [")[0].strip(), live.strip().splitlines()[0].strip())
        # Frame by frame, although the program has inlined functions, which the recording does not list.
        named = [[line.split("  [")[0].strip() for line in text.splitlines() if "trainer.cc:" in line and "#" in line]
                 for text in (recorded, live.split("#0 ", 2)[0] + "#0 " + live.split("#0 ", 2)[1])]
        self.assertGreater(len(named[0]), 1)
        self.assertEqual(named[0], named[1])

    def test_the_end_of_a_killed_recording_stops_where_it_is(self):
        self.record("replay_trainer", ["--fault", "sleep-kill", "--fault-rank", "2"])
        run = self.gdb("deja until seq 41", "deja where")
        self.assertIn("#41 of comm 0", run.stdout)

    def test_the_end_of_a_killed_program_that_makes_no_call(self):
        """No thread of the program stands in a call of Deja's: one of Deja's own finds that the end is reached."""
        self.record_single(sys.executable, "-c", "import os, time; print(os.urandom(4)); time.sleep(1); os.kill(os.getpid(), 9)")
        run = self.gdb("run", "deja where", "bt", "continue", rank=0)
        self.assertIn("deja: the end of the recording\n", run.stdout)
        self.assertIn("the recording ends with: SIGKILL", run.stdout)
        self.assertRegex(run.stdout, r"#\d+ .*(clock_nanosleep|time_sleep|select)")
        self.assertRegex(run.stdout, r"#\d+ .*\bmain\b")
        self.assertNotIn("deja_replay_stop", run.stdout)

    def test_the_first_nan_on_another_rank_is_seen_where_it_arrives(self):
        self.checked(self.record("replay_trainer", ["--fault", "nan", "--fault-rank", "1"]))
        run = self.gdb("deja until nan", "deja tensor recv 18", rank=3)
        self.assertIn("a NaN comes out of AllReduce #42 of comm 0", run.stdout)
        self.assertRegex(run.stdout, r"(?m)^ +17 +\S+ +nan$")
        run = self.gdb("deja until nan", "deja tensor send 18", rank=1)
        self.assertIn("a NaN goes into AllReduce #42 of comm 0", run.stdout)

    def test_the_end_of_a_recorded_hang_is_the_call_that_hung(self):
        process = self.start(self.record_argv("replay_trainer", ["--fault", "hang"]))
        for _ in range(300):
            if "rank 1: still running, in AllReduce #42" in self.deja("info", self.trace_path()).stdout:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        self.finish(process)
        run = self.gdb("deja until end", "deja where", "deja recorded-stack", rank=1)
        self.assertIn("deja: the end of the recording", run.stdout)
        self.assertIn("last call: AllReduce #42 of comm 0, which the recorded run entered and never left", run.stdout)
        recorded, live = run.stdout.split("recorded, the current call:", 1)[1].split("live:", 1)
        self.assertEqual(recorded.strip().splitlines()[0].split("(")[1].split(")")[0],
                         live.strip().splitlines()[0].split("(")[1].split(")")[0])

    def test_until_end_of_an_orderly_run(self):
        self.checked(self.record("replay_trainer"))
        run = self.gdb("deja until end", "deja where")
        self.assertIn("the program ends with exit 0; recorded: exit 0", run.stdout)

    def test_a_stripped_program(self):
        program = self.dir / "stripped"
        shutil.copy(harness.app("replay_trainer"), program)
        subprocess.run(["strip", "--strip-debug", str(program)], check=True)
        self.record(str(program), ["--fault", "crash"])
        run = self.gdb("deja until seq 5", "deja where", "deja tensor send 2", "continue", "deja recorded-stack")
        self.assertIn("last call: Recv #5 of comm 0" if "Recv #5" in run.stdout else "#5 of comm 0", run.stdout)
        self.assertIn("SIGSEGV", run.stdout)
        self.assertIn("CrashHere", run.stdout.split("recorded, the recorded end", 1)[1].splitlines()[1])

    def test_unknown_places_are_refused_without_moving(self):
        self.checked(self.record("replay_trainer"))
        run = self.gdb("deja until step 5", "deja goto step 999", "deja until step 999", "deja goto seq 99999 comm 0",
                       "deja until seq 99999", "deja goto seq 3 comm 77", "deja where", "deja foo", "deja unitl end")
        for words in ("there is no step 999: the recording ends in step", "there is no operation 99999 of comm 0: the last",
                      "there is no operation 99999: the last", "there is no communicator 77", "there is no command `deja foo`",
                      "did you mean `deja until`?"):
            self.assertIn(words, run.stderr, f"\n{run}")
        self.assertEqual(run.stderr.count("there is no step 999"), 2)
        self.assertRegex(run.stdout, r"(?m)^deja: rank 2, step 5, ", "the place is kept")

    def test_a_session_that_is_typed_begins_without_a_complaint(self):
        self.checked(self.record("replay_trainer"))
        commands = self.dir / "commands"
        commands.write_text("deja until step 3\ndeja mark nan1\ndeja where\nkill\nshow prompt\nquit\n")
        with commands.open() as stdin:
            run = self.checked(self.replay(2, options=["--gdb"], stdin=stdin))
        self.assertNotIn("Python Exception", run.stdout + run.stderr)
        self.assertIn("(gdb, step 3) ", run.stdout)
        self.assertRegex(run.stdout, r"deja: mark 'nan1': .*step 3 begins")

    def test_python_of_a_virtual_environment(self):
        """It finds its modules by the name that it was started with."""
        self.checked(self.command([sys.executable, "-m", "venv", "--without-pip", self.dir / "venv"]))
        modules, = (self.dir / "venv" / "lib").glob("python3*/site-packages")
        (modules / "only_here.py").write_text("WORD = 'found'\n")
        (self.dir / "train.py").write_text("import only_here, sys\nprint(only_here.WORD, sys.prefix, flush=True)\n")
        for number, python in enumerate((self.dir / "venv" / "bin" / "python", "venv/bin/python", "python")):
            trace = f"{number}.deja"
            env = {"PATH": f"{self.dir / 'venv' / 'bin'}:{os.environ['PATH']}"}
            recorded = self.checked(self.record_single(python, "train.py", trace=trace, env=env))
            self.assertEqual(recorded.stdout, f"found {self.dir / 'venv'}\n")
            again = self.checked(self.replay(0, trace=trace))
            self.assertEqual(harness.without_report(again.stdout), recorded.stdout)
            run = self.gdb("run", rank=0, trace=trace)
            self.assertIn(recorded.stdout, run.stdout, f"\n{run}")
            self.assertNotIn("ModuleNotFoundError", run.stdout + run.stderr)

    def test_help_and_mistakes(self):
        self.checked(self.record("replay_trainer"))
        run = self.gdb("deja help", "deja where", "deja until", "deja until seq x", "deja tensor")
        self.assertIn("deja until step N", run.stdout)
        self.assertIn("is not running", run.stderr)
        self.assertIn("usage: deja until", run.stderr)
        self.assertIn("give a number", run.stderr)


if __name__ == "__main__":
    if shutil.which("gdb") is None:
        print("gdb is not installed", file=sys.stderr)
        sys.exit(77)
    harness.main()
