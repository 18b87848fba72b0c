"""Threads of a process take locks in the order of the recording: `deja record --threads=order`.

A program runs several behaviours one after another, since starting it takes longer than most of them. DEJA_REPLAYS says
how often each is replayed; DEJA_APART=1 records each behaviour by itself.
"""
import os
import queue
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
APART = os.environ.get("DEJA_APART") == "1"
SCRIPT = Path(__file__).resolve().parents[2] / "apps" / "python" / "threads.py"
ORDER = ("--threads", "order")


# As ctypes is from Python 3.14 on, where it imports threading before it has anything.
CTYPES = """
import threading
import importlib.machinery, os, sys
_apart = [entry for entry in sys.path if os.path.abspath(entry) != os.path.dirname(os.path.dirname(__file__))]
_real = importlib.machinery.PathFinder.find_spec("ctypes", _apart)
__path__ = list(_real.submodule_search_locations)
with open(_real.origin, encoding="utf-8") as _source:
    exec(compile(_source.read(), _real.origin, "exec"))
"""


class Threads(harness.DejaTest):
    def assertReplays(self, command, options=ORDER, trace="run.deja"):
        run = self.checked(self.record_single(*command, options=options, trace=trace))
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0, trace=trace))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
            self.assertIn("the same as recorded", again.stdout)
            self.assertNotIn("nothing moves", again.stderr)
        return run

    def assertKeepOrder(self, *behaviours):
        if not APART:
            return self.assertReplays((harness.app("threads"), *behaviours))
        for behaviour in behaviours:
            self.assertReplays((harness.app("threads"), behaviour), trace=f"{behaviour}.deja")
        return None

    def test_queues(self):
        self.assertKeepOrder("work_queue", "bounded_buffer", "priority_queue", "thread_pool", "impatient_consumers")

    def test_condition_variables(self):
        self.assertKeepOrder("several_waiters", "timed_waits", "latch", "token_ring", "cancelled_waits")

    def test_barriers_and_semaphores(self):
        self.assertKeepOrder("barrier", "semaphores", "timed_semaphores")

    def test_mutexes(self):
        self.assertKeepOrder("log_lines", "object_ids", "philosophers", "accounts", "recursive", "spin_locks")

    def test_attempts(self):
        self.assertKeepOrder("try_loops", "timed_mutexes", "careful_mutexes")

    def test_reader_writer_locks(self):
        self.assertKeepOrder("reader_writer_cache", "timed_readers")

    def test_routines_that_run_once(self):
        self.assertKeepOrder("call_once", "call_once_throws", "nested_once", "double_checked")

    def test_streams_before_and_after_the_second_thread(self):
        self.assertKeepOrder("streams")

    def test_c11(self):
        self.assertKeepOrder("c11_threads")

    def test_a_process_that_ends_while_its_threads_go_on(self):
        self.assertKeepOrder("exit_in_the_middle")

    def test_children_have_an_order_of_their_own(self):
        self.assertKeepOrder("forked")

    def test_a_turn_that_never_comes(self):
        self.checked(self.record_single(harness.app("threads"), "both_come", options=ORDER))
        run = self.checked(self.deja("replay", self.trace_path(), "--rank", 0, "--", harness.app("threads"), "one_stays_away",
                                     env={"DEJA_HASTE": 100}), harness.EXIT_DIVERGED)
        waits = "thread 0.2 waits for its turn at a mutex, and nothing moves: it is the turn of thread 0.1"
        self.assertIn(f"deja: replay: {waits}\n", run.stderr)
        self.assertIn(f"{waits}; from here on threads take locks in any order", run.stdout)

    def test_a_turn_that_never_comes_in_python(self):
        """Which thread the interpreter lets run is not recorded: the replay goes on without the turn."""
        self.checked(self.record_single(sys.executable, SCRIPT, "both_come", options=ORDER))
        run = self.checked(self.deja("replay", self.trace_path(), "--rank", 0, "--", sys.executable, SCRIPT, "one_stays_away",
                                     env={"DEJA_HASTE": 100}))
        self.assertIn("[2]\n", run.stdout)
        said = [line for line in run.stderr.splitlines() if "its turn" in line]
        self.assertEqual(len(said), 1, str(run))
        self.assertRegex(said[0], r"deja: replay: thread 0(\.2)? goes on without its turn at a semaphore, since thread 0\.1, whose "
                                  r"turn it is, does not come: which thread Python's interpreter lets run is not recorded")

    def test_simple_queues_of_python(self):
        self.assertReplays((sys.executable, SCRIPT, "simple_queues"))

    def assertReplaysAtAnotherPace(self, behaviour, recorded, replayed, trace="run.deja", options=ORDER):
        """Pauses in seconds; a trace has no secrets, so a replay may have another one."""
        pause = {"PAUSE_SECRET": recorded}
        run = self.checked(self.record_single(sys.executable, SCRIPT, behaviour, options=options, env=pause, trace=trace))
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0, options=["--pass-env", "PAUSE_SECRET"], env={"PAUSE_SECRET": replayed}, trace=trace))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))
            self.assertNotIn("without its turn", again.stderr)
            self.assertNotIn("in any order", again.stderr)

    def test_a_queue_that_is_fed_by_a_thread(self):
        """In the recording the thread takes most items without a wait. In the replays it comes before they are put."""
        self.assertReplaysAtAnotherPace("fed_queue", "0.01", "0")

    def test_pools_that_are_dropped(self):
        for behaviour in ("dropped_pools", "pools_at_the_end"):
            for recorded, replayed in (("0.02", "0"), ("0", "0.02")):
                with self.subTest(behaviour, recorded=recorded):
                    self.assertReplaysAtAnotherPace(behaviour, recorded, replayed, f"{behaviour}-{recorded}.deja")

    def test_what_threads_hand_to_a_loop_of_asyncio(self):
        for recorded, replayed in (("0.01", "0"), ("0", "0.01")):
            with self.subTest(recorded=recorded):
                self.assertReplaysAtAnotherPace("loop_of_asyncio", recorded, replayed, f"{recorded}.deja")

    def assertReplaysAtOtherPaces(self, behaviour):
        """With an order of locks and without."""
        for options in (ORDER, ()):
            for recorded, replayed in (("0.2", "0"), ("0", "0.2")):
                with self.subTest(recorded=recorded, options=options):
                    self.assertReplaysAtAnotherPace(behaviour, recorded, replayed, f"{recorded}-{len(options)}.deja", options)

    def test_the_ends_of_commands_in_a_loop_of_asyncio(self):
        """A thread waits for each. Their order is recorded without an option, too."""
        self.assertReplaysAtOtherPaces("ends_of_commands")

    def test_semaphores_of_which_any_thread_is_the_last_to_know(self):
        self.assertReplaysAtOtherPaces("dropped_semaphores")

    def test_the_time_beside_threads_that_want_the_interpreter(self):
        """The interpreter's lock reads a clock whenever a thread waits for it."""
        for behaviour in ("clock_beside_others", "timers_beside_others"):
            for recorded, replayed in (("1", "0"), ("0", "1")):
                with self.subTest(behaviour, recorded=recorded):
                    self.assertReplaysAtAnotherPace(behaviour, recorded, replayed, f"{behaviour}-{recorded}.deja")

    def test_pools_of_python(self):
        self.assertReplays((sys.executable, SCRIPT, "pools"))

    def test_simple_queue_has_what_the_interpreters_has(self):
        sys.path.insert(0, str(harness.ROOT / "python"))
        from deja.ordering import ordered_queues

        ours = ordered_queues._class_for(queue.Empty)
        missing = {name for name in dir(queue.SimpleQueue) if not hasattr(ours, name)}
        self.assertEqual(missing, set())
        items = ours()
        for item in (1, None, "x"):
            items.put(item)
        self.assertEqual((items.qsize(), items.empty()), (3, False))
        self.assertEqual([items.get(), items.get_nowait(), items.get(timeout=1)], [1, None, "x"])
        self.assertTrue(items.empty())
        for arguments in ({"block": False}, {"timeout": 0}, {"timeout": 0.001}):
            self.assertRaises(queue.Empty, items.get, **arguments)
        self.assertRaises(queue.Empty, items.get_nowait)
        self.assertRaises(ValueError, items.get, timeout=-1)

    def test_ranks_that_are_threads(self):
        """Communicators of one process: each replay is that of all its ranks."""
        for program, n in (("nccl_initall", 1), ("nccl_rank_threads", 1), ("nccl_threads", 2)):
            for options, meet in (((), ()), (ORDER, ("--meet",))):
                with self.subTest(program, options=options):
                    trace = f"{program}{len(options)}.deja"
                    recorded = self.checked(self.record(program, ["--unseeded", *meet], n=n, trace=trace, options=options))
                    for _ in range(REPLAYS):
                        lines = []
                        for rank in range(n):
                            again = self.checked(self.replay(rank, trace=trace))
                            self.assertIn("the same as recorded", again.stdout)
                            self.assertNotIn("nothing moves", again.stderr)
                            lines += harness.without_report(again.stdout).splitlines()
                        self.assertEqual(sorted(lines), sorted(recorded.stdout.splitlines()))

    def test_threading_that_ctypes_imports_first(self):
        (self.dir / "ctypes").mkdir()
        (self.dir / "ctypes" / "__init__.py").write_text(CTYPES)
        # What an older Python has imported before the program begins, it imports once more.
        program = ("import sys\n"
                   "for name in [*sys.modules]:\n"
                   "    if name in ('ctypes', 'threading') or name.startswith('deja'):\n"
                   "        del sys.modules[name]\n"
                   "sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != '_Finder']\n"
                   "from deja import on_import\n"
                   "on_import.watch()\n"
                   "import ctypes, threading\n"
                   "threading.Thread(target=print, args=(ctypes.sizeof(ctypes.c_int),)).start()")
        run = self.checked(self.deja("record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c", program,
                                     env={"PYTHONPATH": self.dir}))
        self.assertEqual(run.stdout, "4\n")
        self.assertNotIn("as if Deja were not there", run.stderr)

    def test_locks_of_python(self):
        self.assertReplays((sys.executable, SCRIPT, "locks", "queues", "conditions", "semaphores"))


if __name__ == "__main__":
    unittest.main()
