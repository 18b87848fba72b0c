"""What programs see of the hooks of the C library: nothing; and what the engine sees of programs.

Uses the hooks with an engine that makes every call and notes it (tests/fakes/tracing_engine.cc). It can do to a
program what a replay does: serve bytes and pids, move clocks, put files into an overlay.
"""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APPS = harness.BUILD / "tests" / "libc"
PRELOAD = harness.BUILD / "lib" / "libdeja_tracing.so"


class Libc(harness.DejaTest):
    def hooked(self, *argv, **env):
        """Runs the program with the hooks; returns the run and the lines of the engine."""
        log = self.dir / "log"
        log.unlink(missing_ok=True)
        run = self.command([APPS / f"libc_{argv[0]}", *argv[1:]],
                           env={"LD_PRELOAD": PRELOAD, "DEJA_OUT": self.dir, "DEJA_TEST_LOG": log,
                                **{name: str(value) for name, value in env.items()}})
        return run, log.read_text().splitlines() if log.exists() else []

    def both(self, *argv, **env):
        plain = self.command([APPS / f"libc_{argv[0]}", *argv[1:]])
        run, log = self.hooked(*argv, **env)
        self.assertEqual((plain.code, plain.stdout, plain.stderr), (run.code, run.stdout, run.stderr),
                         f"\n{plain}\n{run}")
        return run, log

    @staticmethod
    def inputs(log, thread="0"):
        return [line.split()[2] for line in log if line.startswith(f"{thread} input ")]

    # ---- threads

    def test_threads_have_stable_names_and_all_their_ends_are_seen(self):
        logs = []
        for _ in range(3):
            _, log = self.both("threads")
            logs.append(sorted(line for line in log if " thread " in line))
        self.assertEqual(logs[0], logs[1])
        self.assertEqual(logs[0], logs[2])
        names = {line.split()[0] for line in logs[0]}
        self.assertEqual(len(names), 31)
        for name in ("0.1", "0.5", "0.5.1", "0.5.1.1", "0.5.2", "0.6", "0.7", "0.28"):
            self.assertIn(name, names)
        for name in names:
            self.assertEqual([line for line in logs[0] if line.split()[0] == name],
                             [f"{name} thread end", f"{name} thread start"])

    def test_a_destructor_of_thread_data_runs_before_the_end(self):
        _, log = self.both("threads")
        of_seven = [line for line in log if line.startswith("0.7 ")]
        self.assertEqual([line.split()[1] for line in of_seven], ["thread", "input", "thread"])

    # ---- inputs

    def test_every_input_is_one_event(self):
        for program in ("inputs", "inputs_fortified"):
            with self.subTest(program=program):
                run, log = self.both(program)
                self.assertEqual(run.code, 0)
                seen = self.inputs(log)
                device = "_ZNSt13random_device9_M_getvalEv"
                want = ["getrandom", "getentropy", device, "read", "read", "readv", "read"]  # the last: a stream's buffer
                self.assertEqual(seen[:7], want)
                for name in ("clock_gettime", "gettimeofday", "time", "timespec_get", "gethostname", "uname",
                             "sched_getaffinity", "pthread_getaffinity_np", "getpid", "gettid", "getppid", "sysconf",
                             "get_nprocs", "get_nprocs_conf"):
                    self.assertIn(name, seen)
                self.assertEqual(seen.count("gettimeofday"), 1)
                self.assertEqual(seen.count("clock_gettime"), 2)
                self.assertFalse([line for line in log if "input sysconf" in line and "result=4096" in line])

    def test_entropy_can_be_served(self):
        first, _ = self.hooked("inputs", "show", DEJA_TEST_SERVE_ENTROPY=1)
        second, _ = self.hooked("inputs", "show", DEJA_TEST_SERVE_ENTROPY=1)
        self.assertEqual(first.stdout, second.stdout)
        self.assertIn("getrandom 00 01 02 03 04 05 06 07\n", first.stdout)
        self.assertIn("urandom 14 15 16 17 18 19 1a 1b\n", first.stdout)
        third, _ = self.hooked("inputs", "show")
        self.assertNotEqual(first.stdout, third.stdout)

    def test_calls_before_and_after_all_constructors(self):
        run, log = self.both("early_main")
        self.assertEqual(run.stdout, "early 1\n")
        self.assertGreaterEqual(len(self.inputs(log)), 2)

    # ---- clocks and deadlines

    def test_deadlines_follow_a_clock_that_was_moved(self):
        for offset in (0, -1000 * 10**9, 1000 * 10**9, -123456789):
            with self.subTest(offset=offset):
                run, _ = self.hooked("deadlines", DEJA_TEST_CLOCK_OFFSET_NS=offset,
                                     DEJA_TEST_MONOTONIC_OFFSET_NS=-offset)
                self.assertEqual(run.code, 0)
                self.assertEqual({line.split(": ")[1] for line in run.stdout.splitlines()}, {"waited"}, run.stdout)

    # ---- files

    def test_files_can_be_sent_to_an_overlay(self):
        for program in ("files", "files_fortified"):
            with self.subTest(program=program):
                real = self.dir / f"real-{program}"
                overlay = self.dir / f"overlay-{program}"
                real.mkdir()
                overlay.mkdir()
                run, log = self.both(program, real)
                self.assertEqual(run.stdout, "done 0\n")
                self.assertEqual([p.name for p in real.iterdir()], ["watched-a"])
                (real / "watched-a").write_text("as it was")
                run, _ = self.hooked(program, real, DEJA_TEST_OVERLAY=overlay)
                self.assertEqual(run.stdout, "done 0\n")
                self.assertEqual((real / "watched-a").read_text(), "as it was")
                self.assertEqual([p.name for p in overlay.iterdir()], ["watched-a"])

    # ---- ends

    ENDS = {"return": (3, 0), "exit": (4, 0), "_exit": (5, 1), "_Exit": (5, 1), "quick_exit": (7, 1), "thread": (8, 0),
            "pthread_exit": (0, 0), "failing exec": (12, 0)}

    def test_every_end_has_its_code(self):
        for how, (code, kind) in self.ENDS.items():
            with self.subTest(how=how):
                run, log = self.both("ends", how)
                self.assertEqual(run.code, code)
                ends = [line.split(" ", 1)[1] for line in log if " exit " in line and "how=2" not in line]
                self.assertEqual(ends, [f"exit code={code} how={kind}"])

    def test_static_destructors_come_before_the_end(self):
        _, log = self.both("ends", "return")
        self.assertEqual([line.split()[1] for line in log][-2:], ["input", "exit"])

    def test_exec_is_recorded_and_replayed(self):
        for how in ("exec", "execvp"):
            run, log = self.both("ends", how)
            self.assertTrue(any(line.endswith("exit code=0 how=2") for line in log), log)
        run = self.command([APPS / "libc_ends", "execle"], env={"LD_PRELOAD": PRELOAD, "DEJA_OUT": self.dir})
        # What makes the new image a recorded or replayed process goes along.
        own = ("DEJA_", "LD_PRELOAD=")
        self.assertEqual([line for line in run.stdout.splitlines() if not line.startswith(own)], ["A=b"])

    def test_children_of_all_kinds_end_as_they_do(self):
        run, log = self.both("ends", "children")
        self.assertIn("children 11121314139, system 15\n", run.stdout)
        self.assertEqual(run.code, 6)
        # The children that made calls are known as children, and no crash or end of theirs is the parent's.
        self.assertEqual(sum(" child" in line for line in log), 2)
        self.assertEqual([line for line in log if line.endswith("exit code=6 how=0")], [log[-1]])

    # ---- signals to others

    def test_a_served_pid_means_this_process(self):
        run, log = self.hooked("ends", "kills", DEJA_TEST_SERVE_PID=4194000, DEJA_TEST_REFUSE=1)
        self.assertEqual(run.stdout.splitlines()[:3], ["self 0", "usr1", "parent -1 Operation not permitted"])
        self.assertIn("0 kill self signal=10", log)

    def test_signals_go_where_they_go(self):
        run, _ = self.both("ends", "kills")
        self.assertEqual(run.code, 137)


if __name__ == "__main__":
    harness.main()
