"""Clocks: a replay tells what was recorded, and waits take as long as they did, whenever and wherever it was recorded.

Recordings of another day, or of a machine that was started at another time, are made with hooks below the recorder's
(tests/fakes/tracing_engine.cc). They move the clocks and translate the deadlines back, as another kernel would have
it.
"""
import os
import signal
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

PROGRAMS = harness.BUILD / "tests" / "determinism"
SCRIPTS = harness.ROOT / "tests" / "e2e" / "apps" / "determinism"
TRACING = harness.BUILD / "lib" / "libdeja_tracing.so"
LOCKS = harness.ROOT / "tests" / "e2e" / "apps" / "python" / "contended_locks.py"
REPLAYS = int(os.environ.get("DEJA_REPLAYS", "3"))
YEAR, HOURS = 365 * 86400 * 10**9, 4 * 3600 * 10**9
# The monotonic clock counts from the machine's start: it cannot be set back to before that.
EARLIER = -min(HOURS // 2, time.monotonic_ns() // 2)


class Clocks(harness.DejaTest):
    def record_single(self, *command, day=0, monotonic=0, trace="run.deja"):
        env = {}
        if day or monotonic:
            env = {"LD_PRELOAD": TRACING, "DEJA_TEST_CLOCK_OFFSET_NS": day, "DEJA_TEST_MONOTONIC_OFFSET_NS": monotonic}
        return self.checked(self.deja("record", "--single", "--out", self.trace_path(trace), "--", *command, env=env))

    def replayed(self, *options, trace="run.deja"):
        run = self.checked(self.replay(0, trace=trace, options=options))
        self.assertIn("the same as recorded", run.stdout)
        return "".join(run.stdout.splitlines(True)[:-1])

    def assertWaited(self, output):
        waits = [line for line in output.splitlines() if "too " in line]
        self.assertEqual(waits, [], output)

    def test_every_wait_and_every_clock_on_any_day(self):
        for day, monotonic in ((0, 0), (-YEAR, EARLIER), (YEAR, 300 * HOURS), (-70 * 10**9, 3 * 10**9)):
            with self.subTest(day=day, monotonic=monotonic):
                trace = f"{day}.deja"
                run = self.record_single(PROGRAMS / "determinism_waits", day=day, monotonic=monotonic, trace=trace)
                self.assertWaited(run.stdout)
                for _ in range(int(os.environ.get("DEJA_REPLAYS", "2"))):
                    self.assertEqual(self.replayed(trace=trace), run.stdout)

    def test_live_clocks_wait_too(self):
        run = self.record_single(PROGRAMS / "determinism_waits", day=-YEAR, monotonic=300 * HOURS)
        for mode in ("day", "live"):
            with self.subTest(mode=mode):
                output = self.replayed("--clock", mode)
                self.assertWaited(output)
                self.assertNotEqual(output, run.stdout)

    def test_pythons_waits(self):
        for monotonic in (0, EARLIER, 300 * HOURS):
            with self.subTest(monotonic=monotonic):
                trace = f"{monotonic}.deja"
                run = self.record_single(sys.executable, SCRIPTS / "waits.py", monotonic=monotonic, trace=trace)
                begin = time.monotonic()
                lines = self.replayed(trace=trace).splitlines()
                self.assertLess(time.monotonic() - begin, 60)
                self.assertEqual(lines, run.stdout.splitlines())
                self.assertIn("timer True", lines)

    def test_no_reading_is_lost_when_the_process_is_killed(self):
        for attempt in range(4):
            with self.subTest(attempt=attempt):
                trace, said = f"{attempt}.deja", self.dir / f"said-{attempt}"
                process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(trace), "--",
                                      PROGRAMS / "determinism_ticks", said])
                while process.poll() is None and not (said.exists() and said.read_bytes().strip(b"\0")):
                    time.sleep(0.001)
                time.sleep(0.002 + 0.007 * attempt)
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                os.kill(int(children[0]), signal.SIGKILL)
                self.assertEqual(self.finish(process).code, 137)
                count, last = struct.unpack("<qq", said.read_bytes())
                readings = [reading["ns"] for event in self.show_json("--kind", "clocks", trace=trace)
                            for reading in event.get("readings", []) if "MONOTONIC)" in reading["clock"]]
                self.assertEqual(readings, sorted(readings))
                self.assertIn(len(readings) - count, (0, 1))
                self.assertIn(last, readings[-2:])

    def test_readings_are_listed(self):
        self.record_single(sys.executable, "-c", "import time; time.time(); time.monotonic()")
        events = self.show_json("--call", "clock_gettime")
        self.assertTrue(events)
        clocks = {reading["clock"] for event in events for reading in event["readings"]}
        self.assertIn("clock_gettime(CLOCK_MONOTONIC)", clocks)
        text = self.checked(self.deja("show", self.trace_path(), "--kind", "clocks")).stdout
        self.assertIn("clock_gettime(CLOCK_MONOTONIC)", text)


class PythonsLocks(harness.DejaTest):
    def test_their_readings_are_not_the_program_s(self):
        self.assertPrintsTheSameAgain(sys.executable, LOCKS, replays=REPLAYS)

    def test_nor_are_those_of_more_threads_than_have_rings(self):
        self.assertPrintsTheSameAgain(sys.executable, LOCKS, "0", "150", replays=REPLAYS)


if __name__ == "__main__":
    harness.main()
