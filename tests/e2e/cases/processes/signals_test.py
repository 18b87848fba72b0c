"""Programs end, or go on, as they do without Deja, whatever they have set up for signals.

Uses the hooks with an engine that makes every call and notes it (tests/fakes/tracing_engine.cc).
"""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APP = harness.BUILD / "tests" / "libc" / "libc_signals"
PRELOAD = harness.BUILD / "lib" / "libdeja_tracing.so"
SETUPS = ["default", "ignore", "signal", "sysv", "plain", "info", "onstack", "jump", "exits", "nested", "resethand"]
# What a program does to itself, and the signal that comes of it.
CRASHES = {"null": 11, "bus": 7, "noncanonical": 11, "divide": 8, "illegal": 4, "breakpoint": 5, "abort": 6,
           "raise": 11, "kill": 7, "term": 15, "thread": 11, "calls": 11, "overflow": 11, "threadoverflow": 11}


class Signals(harness.DejaTest):
    def both(self, setup, crash, **env):
        log = self.dir / "log"
        log.unlink(missing_ok=True)
        argv = [APP, setup, crash]
        plain = self.command(argv)
        hooked = self.command(argv, env={"LD_PRELOAD": PRELOAD, "DEJA_OUT": self.dir, "DEJA_TEST_LOG": log, **env})
        self.assertEqual((plain.code, plain.stdout, plain.stderr), (hooked.code, hooked.stdout, hooked.stderr),
                         f"{setup} {crash}\n{plain}\n{hooked}")
        return hooked, log.read_text().splitlines() if log.exists() else []

    def test_every_setup_with_every_crash_ends_as_without_deja(self):
        for setup in SETUPS:
            for crash in CRASHES:
                if setup == "jump" and crash.startswith("thread"):
                    continue  # a jump to another thread's stack has no defined outcome
                with self.subTest(setup=setup, crash=crash):
                    self.both(setup, crash)

    def test_a_deadly_signal_is_reported_once_with_its_stack(self):
        for crash, number in CRASHES.items():
            with self.subTest(crash=crash):
                run, log = self.both("default", crash)
                self.assertEqual(run.code, 128 + number)
                crashes = [line for line in log if " crash " in line]
                self.assertEqual(len(crashes), 1, log)
                self.assertIn(f"signal={number} ", crashes[0])
                if crash != "term":
                    self.assertIn("frames=1", crashes[0])

    def test_the_thread_that_crashed_is_named(self):
        _, log = self.both("default", "thread")
        self.assertIn("0.1 crash signal=11 code=1 frames=1", log)

    def test_a_program_that_recovers_goes_on(self):
        run, log = self.both("jump", "null")
        self.assertEqual(run.stdout.count("jumped back"), 3)
        self.assertEqual(run.code, 7)
        self.assertEqual(log[-1], "0 exit code=7 how=0")
        self.assertTrue(any(" crash " in line for line in log))

    def test_a_handler_that_exits_sets_the_code(self):
        run, log = self.both("exits", "null")
        self.assertEqual(run.code, 51)
        self.assertEqual(log[-1], "0 exit code=51 how=1")

    def test_ignored_signals_are_no_crashes(self):
        run, log = self.both("ignore", "raise")
        self.assertEqual(run.code, 7)
        self.assertFalse(any(" crash " in line for line in log))

    def test_a_fault_in_the_engine_changes_nothing(self):
        for setup in ("default", "info", "jump", "exits", "onstack"):
            self.both(setup, "null", DEJA_TEST_FAULT_IN_CRASH="1")

    def test_core_dumps_are_of_the_same_kind(self):
        code = "import os, sys; s = os.waitstatus_to_exitcode; pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); print(os.waitpid(pid, 0)[1])"
        for crash in ("null", "abort", "illegal"):
            plain = self.command([sys.executable, "-c", code, APP, "default", crash])
            hooked = self.command([sys.executable, "-c", code, APP, "default", crash],
                                  env={"LD_PRELOAD": PRELOAD, "DEJA_OUT": self.dir})
            self.assertEqual(plain.stdout, hooked.stdout)


if __name__ == "__main__":
    harness.main()
