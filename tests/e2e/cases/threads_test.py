"""Threads of a process take locks in the order of the recording: `deja record --threads=order`.

A program runs several behaviours one after another, since starting it takes longer than most of them. DEJA_REPLAYS says
how often each is replayed; DEJA_APART=1 records each behaviour by itself.
"""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
APART = os.environ.get("DEJA_APART") == "1"
SCRIPT = Path(__file__).resolve().parents[1] / "apps" / "python" / "threads.py"
ORDER = ("--threads", "order")


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

    def test_c11(self):
        self.assertKeepOrder("c11_threads")

    def test_a_process_that_ends_while_its_threads_go_on(self):
        self.assertKeepOrder("exit_in_the_middle")

    def test_children_have_an_order_of_their_own(self):
        self.assertKeepOrder("forked")

    def test_locks_of_python(self):
        self.assertReplays((sys.executable, SCRIPT, "locks", "queues", "conditions", "semaphores"))


if __name__ == "__main__":
    unittest.main()
