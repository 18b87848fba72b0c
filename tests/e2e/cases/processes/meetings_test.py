"""Where processes of a rank meet: queues, pools, locks, listeners. A replay gives them the recorded order."""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
APPS = Path(__file__).resolve().parents[2] / "apps" / "python"
PROGRAM = APPS / "meetings.py"


# The other thread's write comes before the collection, its second lock after it.
COLLECTS_AFTER_A_WRITE = """
import gc, multiprocessing, os, threading
lock, number = multiprocessing.Lock(), multiprocessing.Value("i", 0)
reader, writer = os.pipe()
collected = threading.Event()

class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        with number.get_lock():
            number.value += 1

def write():
    with lock:
        os.write(writer, b"x")
    collected.wait()
    with lock:
        print("collected", number.value, flush=True)

thread = threading.Thread(target=write)
thread.start()
Cycle()
os.read(reader, 1)
with number.get_lock():
    number.value += 10
gc.collect()
collected.set()
thread.join()
"""


class MeetingsCase(harness.DejaTest):
    def assertRunsAgain(self, *command, options=()):
        self.assertPrintsTheSameAgain(*command, replays=REPLAYS, options=options)


class Meetings(MeetingsCase):
    def assertMeetAgain(self, what, method="fork"):
        self.assertRunsAgain(sys.executable, PROGRAM, what, method)

    def test_writers_of_a_queue(self):
        self.assertMeetAgain("writers")

    def test_writers_that_wait_for_room(self):
        self.assertMeetAgain("bounded")

    def test_readers_of_a_queue(self):
        self.assertMeetAgain("readers")

    def test_readers_that_are_killed(self):
        self.assertMeetAgain("killed")

    def test_a_pool(self):
        self.assertMeetAgain("pool")

    def test_clients_of_a_listener(self):
        self.assertMeetAgain("listener")

    def test_clients_that_are_spawned(self):
        self.assertMeetAgain("listener", "spawn")

    def test_a_lock(self):
        self.assertMeetAgain("locks")

    def test_waits_that_end_without_anything(self):
        self.assertMeetAgain("timeouts")

    def test_processes_that_are_spawned(self):
        self.assertMeetAgain("writers", "spawn")

    def test_processes_of_a_fork_server(self):
        self.assertMeetAgain("writers", "forkserver")

    def test_a_fork_server_that_inherits_descriptors(self):
        """It closes them and counts on the numbers of its own, which are those of the recording."""
        recording = [harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable, PROGRAM,
                     "writers", "forkserver"]
        run = self.checked(self.command(["bash", "-c", '"$@" 5</dev/null 9</dev/null', "bash", *recording]))
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_a_client_of_a_manager(self):
        self.assertMeetAgain("manager_of_one")

    def test_clients_of_a_manager(self):
        self.assertMeetAgain("manager")

    def test_clients_of_a_manager_that_is_spawned(self):
        self.assertMeetAgain("manager", "spawn")

    def test_a_queue_of_a_manager_for_which_several_wait(self):
        self.assertMeetAgain("managed_queue")

    def test_an_object_of_a_manager_that_has_no_lock(self):
        self.assertMeetAgain("managed_class")

    def test_an_executor(self):
        self.assertMeetAgain("executor")

    def test_a_lock_that_the_writer_of_a_pipe_waits_for(self):
        """The recorded reader gets the lock when all is written. In the replays it comes first."""
        run = self.checked(self.record_single(sys.executable, PROGRAM, "wakeups", "fork", env={"PAUSE_SECRET": "0.3"}))
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0, options=["--pass-env", "PAUSE_SECRET"], env={"PAUSE_SECRET": "0"}))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

    def test_barrier_condition_event_and_value(self):
        self.assertMeetAgain("synchronization")

    def test_waits_for_several_pipes(self):
        self.assertMeetAgain("pipes")


class Pieces(MeetingsCase):
    """How much a read gets of what a command writes depends on when it comes."""

    def assertPiecesAgain(self, way):
        self.assertRunsAgain(sys.executable, APPS / "pieces.py", way)

    def test_reads_that_wait(self):
        self.assertPiecesAgain("reads")
        # They have no number among those of several readers, nor their bytes.
        for read in self.show_json("--rank", "0", "--call", "pipe"):
            self.assertEqual((read["result"], len(read["data"])), (-1, 32), read)

    def test_reads_that_do_not_wait(self):
        self.assertPiecesAgain("looks")

    def test_commands_that_asyncio_starts(self):
        self.assertPiecesAgain("asyncio")

    def test_commands_whose_ends_asyncio_polls_for(self):
        self.assertPiecesAgain("asyncio_pidfd")


class Finalizers(MeetingsCase):
    """Python's collector runs where enough objects have been made, whichever thread made them."""

    def assertFinalizedAgain(self, *words, options=()):
        self.assertRunsAgain(sys.executable, APPS / "finalizers.py", *words, options=options)

    def test_of_objects_in_cycles(self):
        self.assertFinalizedAgain()
        acted = [event for event in self.show_json("--rank", "0", "--kind", "garbage") if event["ended"]]
        self.assertTrue(acted)

    def test_with_an_order_of_locks(self):
        self.assertFinalizedAgain(options=["--threads", "order"])

    def test_that_ask_a_manager(self):
        self.assertFinalizedAgain("manager")

    def test_that_run_after_a_write_of_another_thread(self):
        self.assertRunsAgain(sys.executable, "-c", COLLECTS_AFTER_A_WRITE)
        again = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(again.stdout), "collected 11\n", str(again))
        self.assertNotIn("goes on before", again.stderr)

    def test_where_the_program_sets_when_the_collector_runs(self):
        self.assertFinalizedAgain("thresholds")


class MeetingsInC(MeetingsCase):
    def assertMeetAgain(self, what):
        self.assertRunsAgain(harness.app("meet"), what)

    def test_a_semaphore_in_shared_memory(self):
        self.assertMeetAgain("semaphore")

    def test_a_semaphore_at_another_address(self):
        self.assertMeetAgain("shared-memory")

    def test_a_mutex_in_shared_memory(self):
        self.assertMeetAgain("mutex")

    def test_a_condition_variable_in_shared_memory(self):
        self.assertMeetAgain("condition")

    def test_a_reader_writer_lock_and_a_barrier_in_shared_memory(self):
        self.assertMeetAgain("rwlock")

    def test_a_robust_mutex_whose_owners_end(self):
        self.assertRunsAgain(harness.app("robust"), "owners")

    def test_a_condition_variable_of_a_robust_mutex(self):
        self.assertRunsAgain(harness.app("robust"), "condition")

    def test_a_robust_mutex_that_is_lost(self):
        self.assertRunsAgain(harness.app("robust"), "lost")

    def test_a_counter(self):
        self.assertMeetAgain("counter")

    def test_writers_of_a_pipe(self):
        self.assertMeetAgain("writers")

    def test_writers_of_a_fifo(self):
        self.assertMeetAgain("fifo")

    def test_readers_of_a_pipe(self):
        self.assertMeetAgain("readers")

    def test_select(self):
        self.assertMeetAgain("select")

    def test_epoll(self):
        self.assertMeetAgain("epoll")

    def test_epoll_by_edges(self):
        self.assertMeetAgain("edges")


if __name__ == "__main__":
    unittest.main()
