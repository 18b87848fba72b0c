"""What differs from the recording is found where it starts, and said exactly."""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Divergence(harness.DejaTest):
    def setUp(self):
        self.program = harness.app("replay_trainer")

    def changed(self, *arguments, rank=2, options=(), code=harness.EXIT_DIVERGED):
        """Replays with other arguments than recorded."""
        run = self.deja("replay", self.trace_path(), "--rank", rank, *options, "--", self.program, *arguments)
        return self.checked(run, code)

    def test_one_float_in_a_snapshot_is_named(self):
        self.checked(self.record("replay_trainer"))
        run = self.changed("--flip-step", "7", "--flip-index", "81")
        self.assertRegex(run.stdout, r"rank 2: diverged; .*1 different\n"
                                     r"  step 7, deja_tensor: snapshot gradient differs from the recording at element "
                                     r"81 of 1000 \(float32\): recorded \S+, live \S+, 1 ULP apart\n")
        self.assertIn("main (trainer.cc:", run.stdout)

    def test_a_generator_is_named_before_the_numbers_that_it_makes(self):
        self.checked(self.record("replay_trainer", ["--rng"]))
        generator = "RNG state of trainer diverges at step 8: more or fewer numbers were drawn"
        stopped = self.changed("--rng", "--draw-step", "7")
        self.assertIn(generator, stopped.stdout)
        self.assertNotIn("gradient", stopped.stdout)
        warned = self.changed("--rng", "--draw-step", "7", options=["--on-divergence", "warn", "--json"])
        first, second = warned.json()["ranks"][0]["divergences"][:2]
        self.assertEqual((first["step"], first["tensor"]), (8, "rng/trainer"))
        self.assertEqual((second["step"], second["tensor"]), (8, "gradient"))

    def test_one_float_in_a_collective_whose_bytes_are_known_is_named(self):
        self.checked(self.record("replay_trainer", ["--no-snapshot"]))
        run = self.changed("--no-snapshot", "--flip-step", "7", "--flip-loss")
        self.assertRegex(run.stdout, r"step 7, AllGather #31 of comm 0 \(rank 2 of 4\): input sendbuff differs from the "
                                     r"recording at element 0 of 1 \(float32\): recorded \S+, live \S+, 1 ULP apart")

    def test_one_float_in_a_collective_whose_bytes_are_not_kept_is_found_by_its_digest(self):
        self.checked(self.record("replay_trainer", ["--no-snapshot"]))
        run = self.changed("--no-snapshot", "--flip-step", "7", "--flip-index", "81")
        self.assertRegex(run.stdout, r"step 7, AllReduce #30 of comm 0 .*\(1000 x float32\): recorded digest [0-9a-f]+, "
                                     r".*; live digest [0-9a-f]+")

    def test_warn_goes_on_to_the_end(self):
        recorded = self.checked(self.record("replay_trainer", ["--no-snapshot"]))
        run = self.changed("--no-snapshot", "--flip-step", "7", "--flip-loss",
                           options=["--on-divergence", "warn"])
        self.assertIn(next(x for x in recorded.stdout.splitlines() if x.startswith("rank 2 ")), run.stdout)
        self.assertIn("exit 0, the same as recorded, but it diverged on the way", run.stdout)

    def test_calls_that_are_too_many_or_missing_are_found(self):
        self.checked(self.record("replay_trainer", ["--no-snapshot"]))
        more = self.changed("--no-snapshot", "--steps", "25")
        self.assertIn("AllReduce #82 of comm 0 (rank 2 of 4): the recording has no such operation", more.stdout)
        fewer = self.changed("--no-snapshot", "--steps", "15")
        self.assertIn("more calls on this thread before this one, the first of them AllReduce #62 of comm 0",
                      fewer.stdout)

    def test_json_has_the_same_facts(self):
        self.checked(self.record("replay_trainer"))
        run = self.changed("--flip-step", "7", "--flip-index", "81", options=["--json"])
        verdict = run.json()["ranks"][0]
        self.assertEqual(verdict["verdict"], "diverged")
        first = verdict["divergences"][0]
        self.assertEqual((first["divergence"], first["step"], first["tensor"]), ("snapshot", 7, "gradient"))
        self.assertEqual((first["element"]["index"], first["element"]["ulps"]), (81, 1))
        self.assertNotEqual(first["recorded_hash"], first["live_hash"])

    def test_a_crash_that_does_not_come_is_a_divergence(self):
        self.record("replay_trainer", ["--fault", "crash"])
        run = self.changed("--steps", "20")
        self.assertIn("the recording has no", run.stdout)

    def test_an_edited_program_and_the_recorded_failure(self):
        """Whether it comes again, where the edit shows first, and another build."""
        self.record("replay_trainer", ["--fault", "crash"])
        edited = ["--edited"]
        gone = self.changed("--flip-step", "3", "--flip-loss", options=edited, code=harness.EXIT_OK)
        self.assertRegex(gone.stdout, r"(?m)^rank 2: the recorded failure \(SIGSEGV .*\) does not come: ")
        self.assertRegex(gone.stdout, r"(?m)^  your change takes effect here: step 3, AllGather #\d+ of comm 0 .*: recorded \S+, live \S+,")
        again = self.changed("--fault", "crash", options=[*edited, "--json"], code=harness.EXIT_FAILURE).json()["ranks"][0]
        self.assertEqual((again["verdict"], again["edited"]["live_end"], again["edited"]["takes_effect"]), ("again", "SIGSEGV", None))
        build = self.dir / "another_build"
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", self.program, build], check=True)
        another = ("replay", self.trace_path(), "--rank", 2, "--program", build)
        self.assertIn("replay this one with --edited", self.checked(self.deja(*another), harness.EXIT_FAILURE).stderr)
        run = self.checked(self.deja(*another, *edited), harness.EXIT_FAILURE)
        self.assertRegex(run.stdout, r"(?m)^rank 2: the recorded failure \(SIGSEGV .*\) comes again: SIGSEGV;")
        self.assertIn("  your change takes no effect on what the rank gives to collectives\n", run.stdout)


if __name__ == "__main__":
    harness.main()
