"""Where processes of a rank meet: queues, pools, locks, listeners. A replay gives them the recorded order."""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
PROGRAM = Path(__file__).resolve().parents[1] / "apps" / "python" / "meetings.py"


class Meetings(harness.DejaTest):
    def assertMeetAgain(self, what, method="fork"):
        run = self.checked(self.record_single(sys.executable, PROGRAM, what, method))
        for _ in range(REPLAYS):
            again = self.checked(self.replay(0))
            self.assertEqual(harness.without_report(again.stdout), run.stdout, str(again))

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


if __name__ == "__main__":
    unittest.main()
