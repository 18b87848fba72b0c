"""Nothing stays in /dev/shm or among the temporary files, however a command ends."""
import os
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Leftovers(harness.DejaTest):
    def setUp(self):
        self.tmp = self.dir / "tmp"
        self.tmp.mkdir()
        self.env = {"TMPDIR": self.tmp}

    def temporary(self):
        return sorted(p.name for p in self.tmp.iterdir() if p.name.startswith("deja-"))

    def job_memory(self, trace="run.deja"):
        """What is in shared memory of the job that the trace is of."""
        job = next(line for line in (self.trace_path(trace) / "job").read_text().splitlines()
                   if line.startswith("id "))[3:]
        return sorted(name for name in harness.shm_names() if job in name)

    def wait_for(self, what, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, f"no {what}")
            time.sleep(0.01)

    def start_recording(self):
        job = self.start(self.record_argv("stepper", ["--steps=100000", "--count=64", "--pause-us=2000"], n=2),
                         env=self.env)
        self.wait_for("ranks", lambda: len(self.rank_folders()) == 2 and self.job_memory())
        return job

    def record_some(self):
        self.checked(self.record("stepper", ["--steps=300", "--count=64", "--pause-us=4000"], n=2, env=self.env))

    def end_by(self, process, number):
        """Its exit code, if the signal came in time."""
        process.send_signal(number)
        return self.finish(process).code

    def test_a_recording_that_gets_a_signal_to_end(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                job = self.start_recording()
                self.end_by(job, number)
                self.assertEqual(self.job_memory(), [])
                self.assertEqual(self.temporary(), [])
                self.checked(self.deja("verify", self.trace_path()))
                os.rename(self.trace_path(), self.dir / f"before-{number}.deja")

    def test_a_recording_that_is_killed_with_its_ranks(self):
        job = self.start_recording()
        pids = [int(rank["pid"]) for rank in self.info_json()["ranks"]]
        for pid in [job.pid, *pids]:
            os.kill(pid, signal.SIGKILL)
        self.finish(job)
        self.wait_for("end", lambda: not any(harness.runs(pid) for pid in pids))
        self.assertNotEqual(self.job_memory(), [])
        self.checked(self.deja("recover", self.trace_path(), env=self.env))
        self.assertEqual(self.job_memory(), [])
        self.assertEqual(self.temporary(), [])
        self.assertVerifies()

    def test_a_replay_that_gets_a_signal_to_end(self):
        self.record_some()
        for options in (["--rank", "0"], ["--all", "--compute"], ["--rank", "0", "--gdb-command", "run"]):
            for number in (signal.SIGTERM, signal.SIGHUP):
                with self.subTest(options=options, signal=number):
                    replay = self.start([harness.DEJA, "replay", self.trace_path(), *options], env=self.env)
                    self.wait_for("scratch folder", lambda: self.temporary() or replay.poll() is not None)
                    time.sleep(0.3)
                    code = self.end_by(replay, number)
                    self.assertEqual(self.temporary(), [])
                    if code >= 128:
                        self.assertEqual(code, 128 + number)
        self.checked(self.replay(0, env=self.env))
        self.assertEqual(self.temporary(), [])

    def test_a_bundle_that_is_being_read(self):
        self.checked(self.record("stepper", ["--steps=60", "--count=65536"], n=2, env=self.env))
        bundle = self.dir / "run.deja.zip"
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle, env=self.env))
        self.assertEqual(self.temporary(), [])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                verify = self.start([harness.DEJA, "verify", bundle], env=self.env)
                self.wait_for("folder", lambda: self.temporary() or verify.poll() is not None)
                self.end_by(verify, number)
                self.assertEqual(self.temporary(), [])

    def test_a_bundle_that_is_being_made(self):
        self.checked(self.record("stepper", ["--steps=60", "--count=65536"], n=2, env=self.env))
        place = self.dir / "place"
        place.mkdir()
        pack = [harness.DEJA, "pack", self.trace_path(), "--zstd-level", "19", "--split", "1M", "--out", place / "run.zip"]
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(signal=number):
                packing = self.start(pack, env=self.env)
                self.wait_for("file", lambda: list(place.iterdir()) or packing.poll() is not None)
                self.end_by(packing, number)
                # The next command knows what SIGKILL leaves by its name and its mark.
                own = ("deja-made-", "deja-making-") if number == signal.SIGKILL else ()
                left = [path for path in place.iterdir() if not path.name.startswith(own)]
                self.assertEqual(left, [], "nothing half-made")
        self.checked(self.deja(*pack[1:], env=self.env))
        self.assertEqual({path.suffix for path in place.iterdir()} - {f".{number:03}" for number in range(1, 100)}, set())
        self.checked(self.deja("verify", place / "run.zip.001", env=self.env))
        self.assertEqual(self.temporary(), [])

    def test_a_bundle_that_is_being_unpacked(self):
        self.checked(self.record("stepper", ["--steps=60", "--count=65536"], n=2, env=self.env))
        place = self.dir / "place"
        place.mkdir()
        bundle = self.dir / "run.deja.zip"
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle, env=self.env))
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                unpacking = self.start([harness.DEJA, "unpack", bundle, "--out", place / "run.deja"], env=self.env)
                self.wait_for("file", lambda: list(place.iterdir()) or unpacking.poll() is not None)
                if self.end_by(unpacking, number) >= 128:
                    self.assertFalse((place / "run.deja").exists(), "nothing half-made")
                else:
                    shutil.rmtree(place / "run.deja")
        self.checked(self.deja("unpack", bundle, "--out", place / "run.deja", env=self.env))
        self.assertEqual([path.name for path in place.iterdir()], ["run.deja"])
        self.checked(self.deja("verify", place / "run.deja"))

    def test_the_next_command_removes_what_a_killed_one_has_left(self):
        self.record_some()
        bundle = self.dir / "run.deja.zip"
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle, env=self.env))
        (self.tmp / "deja-others").mkdir()  # another program's own
        replay = self.start([harness.DEJA, "replay", self.trace_path(), "--rank", "0"], env=self.env)
        self.wait_for("scratch folder", lambda: len(self.temporary()) == 2)
        # One that is being used stays.
        self.checked(self.deja("verify", bundle, env=self.env))
        running = replay.poll() is None
        if running:
            self.assertEqual(len(self.temporary()), 2)
        os.killpg(replay.pid, signal.SIGKILL)
        self.finish(replay)
        self.checked(self.deja("verify", bundle, env=self.env))
        self.assertEqual(self.temporary(), ["deja-others"])

    def test_a_program_of_python_that_reads_a_bundle(self):
        self.record_some()
        bundle = self.dir / "run.deja.zip"
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle, env=self.env))
        read = "import sys; from deja.trace import Trace; trace = Trace(sys.argv[1], program=sys.argv[2]);" \
               "print(len(trace.tensor_infos(0)), flush=True);"
        env = {**self.env, "PYTHONPATH": harness.ROOT / "python"}
        for end, left in ("trace.close()", 0), ("", 0), ("import os; os.fork() or os._exit(0); os.wait()", 0), \
                ("import os; os.kill(os.getpid(), 9)", 1):
            with self.subTest(end=end):
                run = self.command([sys.executable, "-c", read + end, bundle, harness.DEJA], env=env)
                self.assertGreater(int(run.stdout), 0)
                self.assertEqual(len(self.temporary()), left)
        self.checked(self.deja("verify", bundle, env=self.env))
        self.assertEqual(self.temporary(), [])


if __name__ == "__main__":
    harness.main()
