"""Recording changes nothing that a program or its user sees, and wrappers leave no trace of theirs."""
import dataclasses
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

LEVELS = ("order", "digest", "full")
# These print their process's number, the time and what they drew.
RANDOM = {"cuda_random", "curand_generators", "replay_checkpoints", "replay_clocks", "replay_trainer"}

# What they print is what they draw, or where their memory is.
UNSEEDED = {"addresses", "forked_ranks", "launching_rank", "openmp_gomp", "openmp_omp", "thread_tree", "workers"}


def without_numbers(run):
    return dataclasses.replace(run, stdout=re.sub(r"\b([0-9a-f]{16}|[0-9a-f]{8}|\d+)\b", "#", run.stdout))


class SameOutput(harness.DejaTest):
    def test_every_program_prints_the_same(self):
        names = harness.app_names()
        self.assertIn("reduces", names)
        for name in names:
            if name.startswith("determinism_") or name in UNSEEDED:
                continue
            with self.subTest(program=name):
                ranks = 4 if name.startswith("nccl_") else 2
                plain = self.launch(name, n=ranks)
                recorded = self.record(name, n=ranks, trace=f"{name}.deja")
                if name in RANDOM:
                    plain, recorded = without_numbers(plain), without_numbers(recorded)
                self.assertSameBehaviour(plain, recorded)
                if self.trace_path(f"{name}.deja").exists():
                    self.assertVerifies(f"{name}.deja")

    def test_every_level(self):
        plain = self.launch("tasks", n=4)
        for level in LEVELS:
            with self.subTest(level=level):
                recorded = self.record("tasks", n=4, level=level, trace=f"{level}.deja")
                self.assertSameBehaviour(plain, recorded)
                self.assertEqual(self.rank_folders(f"{level}.deja"),
                                 [f"rank-{r:05}" for r in range(4)])
                self.assertVerifies(f"{level}.deja")

    def test_the_report_at_the_end(self):
        run = self.checked(self.record("reduces", n=2))
        self.assertRegex("\n".join(run.deja_lines()),
                         r"^deja: recorded 2 ranks in run\.deja \([0-9.]+ k?M?B\)\ndeja: next: deja info run\.deja$")

    def test_results_as_json(self):
        run = self.record("reduces", ["--end=code"], n=3, options=["--json"])
        self.assertEqual(run.code, 7)
        result = json.loads(run.stdout[run.stdout.index("{"):])
        self.assertEqual(result["exit_code"], 7)
        self.assertEqual([r["rank"] for r in result["ranks"]], [0, 1, 2])
        self.assertEqual(result["ranks"][1]["end"], {"exit_code": 7, "signal": 0})

    def test_nothing_stays_in_shared_memory(self):
        tails = self.dir / "tails"
        tails.mkdir()
        self.checked(self.record("reduces", n=4, env={"DEJA_TAIL_DIR": tails}))
        for way in ("segv", "kill", "_exit"):
            self.record("reduces", [f"--end={way}"], n=4, trace=f"{way}.deja", env={"DEJA_TAIL_DIR": tails})
            self.assertVerifies(f"{way}.deja")
        self.assertEqual(os.listdir(tails), [])


class Wrappers(harness.DejaTest):
    """Processes with a rank's environment that are not the rank."""

    def wrapped(self, *command):
        argv = ["record", "--loopback", "-n", "2", "--out", self.trace_path(), "--", *command]
        run = self.checked(self.deja(*argv))
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001"])
        self.assertVerifies()
        self.assertEqual(self.info_json()["executable"], harness.app("reduces"))
        return run

    def test_timeout(self):
        self.wrapped("timeout", "60", harness.app("reduces"))

    def test_env_and_nested_shells(self):
        self.wrapped("env", "X=1", "bash", "-c",
                     f"date >/dev/null; (true; {harness.app('reduces')}); x=$(hostname); exit $?")

    def test_exec_chain(self):
        self.wrapped("bash", "-c", f"exec env Y=2 bash -c 'exec {harness.app('reduces')}'")

    def test_python_parent(self):
        self.wrapped(sys.executable, "-c",
                     "import subprocess, sys, random, time; random.random(); time.time(); "
                     f"sys.exit(subprocess.call(['{harness.app('reduces')}']))")

    def test_processes_without_communicator_leave_nothing(self):
        tails = self.dir / "tails"
        tails.mkdir()
        argv = ["record", "--loopback", "-n", "2", "--out", self.trace_path(), "--"]
        for program in ([harness.app("nothing")], ["bash", "-c", "for i in 1 2 3; do (date); done"],
                        ["bash", "-c", f"{harness.app('nothing')} & kill -9 $!; wait; true"],
                        [sys.executable, "-c", "import random; print(random.random() < 2)"]):
            with self.subTest(program=program):
                self.checked(self.deja(*argv, *program, env={"DEJA_TAIL_DIR": tails}))
                self.assertEqual(os.listdir(self.dir), ["tails"])
                self.assertEqual(os.listdir(tails), [])

    def test_children_of_every_kind(self):
        plain = self.launch("children", n=2)
        recorded = self.record("children", n=2)
        self.assertSameBehaviour(plain, recorded)
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001"])
        self.assertVerifies()
        calls = [e for e in self.show_json("--rank", "1") if e.get("call") == "AllReduce"]
        self.assertEqual(len(calls), 10)


class CommandLine(harness.DejaTest):
    def test_existing_trace_is_refused_without_force(self):
        self.checked(self.record("reduces", n=2))
        before = self.info_json()["job"]
        again = self.record("reduces", n=2)
        self.assertEqual(again.code, harness.EXIT_FAILURE)
        self.assertIn("--force", again.stderr)
        self.assertEqual(again.stdout, "")
        self.assertEqual(self.info_json()["job"], before)
        self.checked(self.record("reduces", n=2, options=["--force"]))
        self.assertNotEqual(self.info_json()["job"], before)

    def test_force_removes_nothing_but_traces(self):
        self.trace_path("precious").mkdir()
        (self.trace_path("precious") / "thesis.tex").write_text("x")
        run = self.record("reduces", n=2, trace="precious", options=["--force"])
        self.assertEqual(run.code, harness.EXIT_FAILURE)
        self.assertIn("thesis.tex", run.stderr)
        self.assertTrue((self.trace_path("precious") / "thesis.tex").exists())

    def test_default_name_counts(self):
        for n in (1, 2):
            run = self.checked(self.deja("record", "--loopback", "-n", "1", "--", harness.app("reduces")))
            self.assertRegex(run.stderr, rf"recorded 1 rank in deja-reduces-\d{{8}}-{n}\.deja")

    def test_usage(self):
        for argv, part in ((["record"], "no program is given"),
                           (["record", "--loopback", "--", "true"], "-n"),
                           (["record", "-n", "2", "--", "true"], "--loopback"),
                           (["record", "--level", "most", "--", "true"], "level")):
            with self.subTest(argv=argv):
                run = self.deja(*argv)
                self.assertEqual(run.code, harness.EXIT_USAGE, str(run))
                self.assertIn(part, run.stderr)

    def test_without_a_program_it_names_the_launchers_that_are_here(self):
        (self.dir / "torchrun").write_text("#!/bin/sh\n")
        (self.dir / "torchrun").chmod(0o755)
        run = self.checked(self.command([harness.DEJA, "record"], env={"PATH": str(self.dir)}), harness.EXIT_USAGE)
        self.assertRegex(run.stderr, rf"deja record -- torchrun .* {self.dir}/torchrun is here\n")
        self.assertIn("deja record --loopback -n 4 -- ./train", run.stderr)
        self.assertNotIn("srun", run.stderr)

    def test_missing_program(self):
        run = self.deja("record", "--out", self.trace_path(), "--", "./not-there")
        self.assertEqual(run.code, 127)
        self.assertIn("not-there", run.stderr)
        self.assertFalse(self.trace_path().exists())

    def test_exit_codes_of_a_plain_command(self):
        for script, code in (("exit 0", 0), ("exit 41", 41), ("kill -TERM $$", 143)):
            with self.subTest(script=script):
                run = self.deja("record", "--out", self.trace_path(), "--", "sh", "-c", script)
                self.assertEqual(run.code, code, str(run))

    def test_stdin_reaches_the_command(self):
        source = self.dir / "input"
        source.write_text("a line\n")
        with open(source) as stdin:
            run = self.command([harness.DEJA, "record", "--out", self.trace_path(), "--", "cat"], stdin=stdin)
        self.assertEqual(run.stdout, "a line\n")

    def test_signal_reaches_the_job(self):
        process = self.start(self.record_argv("reduces", ["--calls=3", "--say", "--end=hang"], n=2))
        for _ in range(4):
            process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        run = self.finish(process)
        self.assertEqual(run.code, 143, str(run))
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001"])
        self.assertVerifies()

    def test_others_are_ended_when_a_rank_fails(self):
        script = 'if [ "$RANK" = 1 ]; then exit 5; fi; sleep 100'
        run = self.deja("record", "--loopback", "-n", "3", "--grace", "0.2", "--out", self.trace_path(),
                        "--", "bash", "-c", script, timeout=30)
        self.assertEqual(run.code, 5)


if __name__ == "__main__":
    harness.main()
