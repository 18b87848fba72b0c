"""A rank that runs again alone does what it did: same output, same end, however the recording ended."""
import os
import re
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

# NCCL prints this itself, so a replay, which has no NCCL, does not.
OF_THE_LIBRARY = ("NCCL_",)


class ReplayTest(harness.DejaTest):
    def replay_json(self, rank, *options, trace="run.deja", code=0):
        run = self.checked(self.replay(rank, trace=trace, options=("--json", *options)), code)
        return run, run.json()["ranks"][0]

    def own_lines(self, text):
        """What the program printed: with --json it is on stderr, beside Deja's own lines."""
        lines = [x for x in text.splitlines() if not x.startswith("deja:") and not x.startswith(OF_THE_LIBRARY)]
        return [re.sub(r"after \d+\.\d+ s", "after … s", x) for x in lines]  # how long it took is not recorded


class EveryProgram(ReplayTest):
    def test_every_rank_of_every_nccl_program_prints_the_same_alone(self):
        names = [name for name in harness.app_names() if name.startswith("nccl_")]
        self.assertGreater(len(names), 10)
        for name in names:
            with self.subTest(program=name):
                trace = f"{name}.deja"
                run = self.record(name, ["--unseeded"], n=4, trace=trace)
                lines = []
                for folder in self.rank_folders(trace):
                    replayed, verdict = self.replay_json(int(folder[5:10]), trace=trace)
                    self.assertEqual(verdict["verdict"], "same", f"\n{replayed}")
                    self.assertEqual(verdict.get("digests_different", 0), 0)
                    lines += self.own_lines(replayed.stderr)
                self.assertEqual(sorted(lines), sorted(self.own_lines(run.stdout) + self.own_lines(run.stderr)))


class Inputs(ReplayTest):
    def test_entropy_clocks_and_identity_are_those_of_the_recording(self):
        run = self.checked(self.record("replay_clocks", n=1))
        self.assertIn("wait: good, good", run.stdout)
        time.sleep(1.2)  # the live clock must be another one
        for _ in range(3):
            replayed = self.checked(self.replay(0))
            self.assertEqual(replayed.stdout.splitlines()[:-1], run.stdout.splitlines())


class Trainer(ReplayTest):
    def test_a_replay_is_the_same_every_time(self):
        run = self.checked(self.record("replay_trainer"))
        weights = next(x for x in run.stdout.splitlines() if x.startswith("rank 2 "))
        for _ in range(5):
            replayed, verdict = self.replay_json(2)
            self.assertIn(weights, replayed.stderr)
            self.assertEqual(verdict["operations_served"], 101)
            self.assertGreater(verdict["digests_compared"], 90)

    def test_the_verdict_is_a_sentence(self):
        self.checked(self.record("replay_trainer"))
        run = self.checked(self.replay(1))
        self.assertRegex(run.stdout, r"rank 1: exit 0, the same as recorded; 101 collectives served, "
                                     r"\d+ digests compared, all equal\n$")

    def test_all_ranks_side_by_side(self):
        run = self.checked(self.record("replay_trainer"))
        for options in (["--ranks", "0-3"], ["--all"]):
            replayed = self.checked(self.deja("replay", self.trace_path(), *options))
            for rank in range(4):
                self.assertRegex(replayed.stdout, rf"(?m)^rank {rank}: exit 0, the same as recorded")
            for line in run.stdout.splitlines():
                self.assertIn(line, replayed.stdout)
        part = self.checked(self.deja("replay", self.trace_path(), "--ranks", "1-2"))
        self.assertNotIn("rank 0:", part.stdout)
        self.assertIn("rank 2: exit 0", part.stdout)

    def test_a_bundle_replays_like_the_directory(self):
        run = self.checked(self.record("replay_trainer"))
        self.checked(self.deja("pack", self.trace_path(), "--out", self.dir / "run.deja.zip"))
        replayed = self.checked(self.replay(3, trace="run.deja.zip"))
        self.assertIn(next(x for x in run.stdout.splitlines() if x.startswith("rank 3 ")), replayed.stdout)
        self.assertIn("rank 3: exit 0, the same as recorded", replayed.stdout)

    def test_a_crash_comes_at_the_same_instruction(self):
        run = self.record("replay_trainer", ["--fault", "crash"])
        self.assertEqual(run.code, 139)
        for _ in range(3):
            replayed = self.checked(self.replay(2))
            self.assertRegex(replayed.stdout, r"rank 2: SIGSEGV at trainer\.cc:\d+, the same as recorded; ")
        other = self.checked(self.replay(1))
        self.assertIn("rank 1: exit 3, the same as recorded", other.stdout)
        self.assertIn("remote process exited", other.stdout)

    def test_an_abort_and_an_exit_code_come_again(self):
        self.record("replay_trainer", ["--fault", "abort"], trace="abort.deja")
        self.assertRegex(self.checked(self.replay(2, trace="abort.deja")).stdout,
                         r"rank 2: SIGABRT at trainer\.cc:\d+, the same as recorded")
        self.record("replay_trainer", ["--fault", "exit"], trace="exit.deja")
        self.assertIn("rank 2: exit 7, the same as recorded", self.checked(self.replay(2, trace="exit.deja")).stdout)

    def test_a_rank_that_killed_itself_replays_to_there(self):
        self.record("replay_trainer", ["--fault", "sleep-kill"])
        run, verdict = self.replay_json(2)
        self.assertEqual(verdict["verdict"], "same", f"\n{run}")
        self.assertEqual(verdict["operations_served"], 51)

    def test_a_rank_that_was_ended_before_its_own_end_may_go_on_to_that(self):
        """A launcher ends the other ranks when one has failed; what they were about to do they do in a replay."""
        script = "import os, sys; os.write(1, b'%d\\n' % os.getpid()); sum(range(40_000_000)); sys.exit(3)"
        process = self.start([harness.DEJA, "record", "--single", "--out", self.trace_path(), "--", sys.executable, "-c", script])
        os.kill(int(process.stdout.readline()), signal.SIGTERM)
        self.finish(process)
        self.assertRegex(self.info_json()["ranks"][0]["ended"], "^SIGTERM")
        # A slow machine is not waited for.
        self.assertRegex(self.checked(self.replay(0)).stdout,
                         "rank 0: (exit 3, after everything that was recorded, where another process ended it: SIGTERM|"
                         "the end of the recording is reached: SIGTERM)")

    def test_the_end_by_a_signal_from_outside_is_no_divergence(self):
        """A signal of a scheduler, or of a user. Wherever between two operations it came, the program goes on in a
        replay to the next one."""
        for attempt in range(3):
            trace = f"ended-{attempt}.deja"
            process = self.start(self.record_argv("replay_trainer", ["--steps", "1000000"], n=2, trace=trace))
            while not (self.trace_path(trace) / "rank-00001").is_dir():
                self.assertIsNone(process.poll())
                time.sleep(0.02)
            time.sleep(0.3 + 0.1 * attempt)
            process.send_signal(signal.SIGTERM)
            self.finish(process)
            for rank in range(2):
                replayed = self.checked(self.replay(rank, trace=trace))
                self.assertNotIn("diverge", replayed.stdout)

    def test_programs_with_other_allocators_replay(self):
        """They ask for files and processors when they start, and so call Deja before anything may be allocated."""
        libraries = [path for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")
                     for path in [f"/usr/lib/x86_64-linux-gnu/{name}"] if os.path.exists(path)]
        if not libraries:
            self.skipTest("needs libjemalloc2, libtcmalloc-minimal4 or libmimalloc2.0")
        for number, library in enumerate(libraries):
            with self.subTest(library=library):
                trace = f"allocator-{number}.deja"
                self.checked(self.record("replay_trainer", ["--steps", "5"], n=2, trace=trace, env={"LD_PRELOAD": library}))
                for rank in range(2):
                    self.assertIn("the same as recorded", self.checked(self.replay(rank, trace=trace)).stdout)

    def test_a_hang_ends_with_the_waits_of_its_threads(self):
        process = self.start(self.record_argv("replay_trainer", ["--fault", "hang"]))
        self.wait_for_hang(3)
        process.send_signal(signal.SIGINT)
        self.assertRegex(self.finish(process).stderr, r"--rank 2 --gdb +it never reached AllReduce #42\n")
        run, verdict = self.replay_json(1)
        self.assertEqual(verdict["verdict"], "same", f"\n{run}")
        self.assertTrue(verdict["end_of_recording"])
        details = "\n".join(verdict["details"])
        self.assertIn("rank 1 entered AllReduce #42 of comm 0 and never left", details)
        self.assertIn("rank 2 never entered it", details)
        self.assertNotIn("rank 3 never entered it", details)

    def wait_for_hang(self, rank):
        """Until the rank waits in the operation that its peer never enters."""
        for _ in range(300):
            info = self.deja("info", self.trace_path())
            if re.search(rf"(?m)^rank {rank}: .*in AllReduce #42 of comm 0", info.stdout):
                return
            time.sleep(0.1)
        self.fail("the job never reached its hang")

    def test_ranks_killed_at_any_moment_replay_to_there(self):
        for delay in (0.05, 0.15, 0.3):
            with self.subTest(delay=delay):
                trace = f"killed-{delay}.deja"
                process = self.start(self.record_argv("replay_trainer", ["--steps", "100000"], trace=trace))
                for _ in range(300):
                    if len(self.rank_folders(trace)) == 4:
                        break
                    time.sleep(0.05)
                time.sleep(delay)
                for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                    os.kill(int(child), signal.SIGKILL)
                self.finish(process)
                for rank in range(4):
                    run, verdict = self.replay_json(rank, trace=trace)
                    self.assertEqual(verdict["verdict"], "same", f"\n{run}")
                    self.assertEqual(verdict["digests_different"], 0)


if __name__ == "__main__":
    harness.main()
