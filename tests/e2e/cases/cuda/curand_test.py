"""Generators of cuRAND's host API: what they draw is recorded, and served or computed again and compared."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

GENERATORS = 6
CALLS = 11  # of a generator, a step


class Curand(harness.DejaTest):
    PROGRAM = "curand_generators"

    def environment(self, env):
        """The library reads its release from a file, so that a replay can meet another one."""
        return super().environment({"FAKE_CURAND": self.dir / "release", **(env or {})})

    def set_release(self, number):
        (self.dir / "release").write_text(str(number))

    def record_app(self, *args, level="full", options=()):
        return self.checked(self.record_single(harness.app(self.PROGRAM), *args,
                                               options=["--level", level, *options]))

    def replay_app(self, *args, options=(), code=0):
        program = ["--", harness.app(self.PROGRAM), *args] if args else []
        return self.checked(self.deja("replay", self.trace_path(), *options, *program), code)

    def replay_json(self):
        return self.checked(self.deja("replay", self.trace_path(), "--json")).json()["ranks"][0]

    def assertReplays(self, recorded, **kwargs):
        run = self.replay_app(**kwargs)
        self.assertEqual(harness.without_report(run.stdout), recorded.stdout, str(run))
        return run


class HostGenerators(Curand):
    def test_recorded_it_prints_the_same(self):
        args = [harness.app(self.PROGRAM), "--seed=12"]
        plain = self.checked(self.command(args))
        self.assertRegex(plain.stdout, r"^seed 000000000000000c, version 10000 \(10\), result [0-9a-f]{16}\n$")
        for level in ("order", "digest", "full"):
            self.assertSameBehaviour(plain, self.checked(
                self.record_single(*args, options=["--level", level], trace=f"{level}.deja")))

    def test_served(self):
        recorded = self.record_app()
        self.assertVerifies()
        self.set_release(-1)  # nothing of it is needed
        self.assertReplays(recorded)

    def test_opened_by_the_program(self):
        recorded = self.record_app("--open")
        self.assertEqual(len(self.rank_folders()), 1)
        self.assertEqual(len(self.generated()), 3 * GENERATORS * CALLS)
        self.assertReplays(recorded)

    def test_a_replay_of_another_release_gets_the_recorded_version(self):
        recorded = self.record_app()
        self.set_release(3)
        self.assertReplays(recorded)

    def generated(self):
        return [e for e in self.show_json("--kind", "enter") if "seq_on_comm" in e]

    def test_show_lists_the_calls(self):
        self.record_app("--seed=12")
        text = self.checked(self.deja("show", self.trace_path())).stdout
        for line in (r'comm 0 "cuRAND PSEUDO_XORWOW on the host" is rank 0 of 1',
                     r'comm 4 "cuRAND QUASI_SOBOL32 on the host" is rank 0 of 1',
                     r"enter curandCreateGeneratorHost rng_type=PSEUDO_MT19937",
                     r"enter curandSetPseudoRandomGeneratorSeed comm 0 seed=113",
                     r"enter curandSetGeneratorOrdering comm 3 order=PSEUDO_LEGACY",
                     r"enter curandSetQuasiRandomGeneratorDimensions comm 4 num_dimensions=5",
                     r"enter curandGenerateNormal #5 comm 0 n=60 mean=0.5 stddev=2.5",
                     r"enter curandGeneratePoissonMethod #10 comm 5 n=60 lambda=3.5 method=KNUTH",
                     r"results #4 comm 1 out=float64\[60\] "):
            self.assertRegex(text, line)

    def test_verified(self):
        for level, compared in (("order", False), ("digest", True)):
            with self.subTest(level):
                recorded = self.record_app(level=level, options=["--force"])
                self.assertReplays(recorded)
                report = self.replay_json()
                self.assertEqual(report["digests_compared"] > 2 * GENERATORS * (CALLS - 3), compared, report)

    def test_another_library_is_a_divergence(self):
        self.record_app(level="digest")
        self.set_release(7)
        run = self.replay_app(code=harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"curandGenerate #1 of comm 0 \(rank 0 of 1\): result outputPtr differs")

    def test_a_library_that_does_not_work_is_reported(self):
        self.record_app(level="digest")
        self.set_release(-1)
        run = self.replay_app(code=harness.EXIT_FAILURE)
        self.assertRegex(run.stdout, r"computing curandGenerate #1 of comm 0: its result is not in the trace, and "
                                     r"cuRAND's curandCreateGeneratorHost answers INITIALIZATION_FAILED \(203\)")
        self.assertIn("--level full", run.stdout)

    def test_other_arguments_are_divergences(self):
        self.record_app()
        for fault, text in (
                ("seed", r"curandSetPseudoRandomGeneratorSeed of comm 0 .*: seed is 6, recorded 5"),
                ("offset", r"curandSetGeneratorOffset of comm 1 .*: offset is 101, recorded 100"),
                ("order", r"curandSetGeneratorOrdering of comm 3 .*: order is PSEUDO_SEEDED, recorded PSEUDO_LEGACY"),
                ("dimensions", r"curandSetQuasiRandomGeneratorDimensions of comm 4 .*: num_dimensions is 6, recorded 5"),
                ("mean", r"curandGenerateNormal #27 of comm 0 .*: mean is 1, recorded 0.5"),
                ("extra", r"curandGenerateUniform #23 of comm 0 .*: the recorded run called curandGenerate here")):
            with self.subTest(fault):
                run = self.replay_app(f"--fault={fault}", code=harness.EXIT_DIVERGED)
                self.assertRegex(run.stdout, "step 2, " + text)

    def test_from_a_checkpoint(self):
        recorded = self.record_app("--steps=6", options=["--checkpoint-every", "2"])
        run = self.assertReplays(recorded, options=["--from-step", "4"])
        self.assertIn("from the checkpoint at step 4\n", run.stderr)

    def test_from_a_checkpoint_nothing_is_computed(self):
        self.record_app("--steps=6", level="digest", options=["--checkpoint-every", "2"])
        run = self.replay_app(options=["--from-step", "4"], code=harness.EXIT_FAILURE)
        self.assertRegex(run.stdout, r"curandGenerate #45 of comm 0: its result is not in the trace, .* at the checkpoint is not known")

    def test_results_outside_the_window_are_computed(self):
        recorded = self.record_app("--steps=8", "--count=6000", options=["--keep-steps", "2"])
        self.assertReplays(recorded)
        self.assertGreater(self.replay_json()["digests_compared"], 0)
        self.set_release(-1)
        self.replay_app(code=harness.EXIT_FAILURE)

    def test_a_replay_s_own_trace_is_the_same(self):
        self.record_app()
        self.replay_app(options=["--out", self.trace_path("again.deja")])
        run = self.checked(self.deja("diff", self.trace_path(), self.trace_path("again.deja")))
        self.assertNotIn("differ", run.stdout.splitlines()[0])


class NvidiasLibrary(Curand):
    """Its generators on the host need no driver."""
    PROGRAM = "curand_generators"

    def test_served_and_verified(self):
        folder = os.environ.get("DEJA_CURAND_LIBRARY", "/usr/local/cuda/lib64")
        if not (Path(folder) / "libcurand.so.10").exists():
            self.skipTest(f"no libcurand.so.10 in {folder} (DEJA_CURAND_LIBRARY names a folder)")
        recorded = self.checked(self.record_single(harness.app(self.PROGRAM), "--steps=2", options=["--level", "digest"],
                                                   env={"LD_LIBRARY_PATH": folder}))
        self.assertRegex(recorded.stdout, r"version 1[0-9]{4} \(1[0-9]\)")
        self.assertNotIn("version 10000 ", recorded.stdout)
        run = self.replay_app(options=["--json"])
        self.assertIn(recorded.stdout, run.stderr)
        report = run.json()["ranks"][0]
        self.assertGreater(report["digests_compared"], GENERATORS * (CALLS - 3))
        self.assertEqual(report["digests_different"], 0)


class DeviceGenerators(Curand):
    """On the simulated driver, whose streams run late."""
    PROGRAM = "cuda_random"

    def check(self, *args, level="full"):
        recorded = self.record_app(*args, level=level, options=["--force"])
        self.assertNotIn("not recorded", self.deja("info", self.trace_path()).stdout)
        self.assertReplays(recorded)
        return recorded

    def test_recorded_it_prints_the_same(self):
        args = [harness.app(self.PROGRAM), "--seed=12"]
        plain = self.checked(self.command(args))
        self.assertSameBehaviour(plain, self.checked(self.record_single(*args)))

    def test_served(self):
        self.check()
        self.set_release(-1)
        self.replay_app()

    def test_the_legacy_stream(self):
        self.check("--legacy")

    def test_verified(self):
        self.check(level="digest")
        self.assertEqual(self.replay_json()["digests_compared"], 5 * 3)
        self.set_release(7)
        run = self.replay_app(code=harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"curandGenerateUniform #1 of comm 0 \(rank 0 of 1\): result outputPtr differs")

    def test_graphs(self):
        self.check("--graph")
        results = [e for e in self.show_json("--kind", "results") if (e["comm"], e["seq_on_comm"]) == (0, 1)]
        self.assertEqual(len({tensor["hash"] for e in results for tensor in e["outputs"]}), 5)
        self.set_release(-1)
        self.replay_app()

    def test_graphs_verified(self):
        self.check("--graph", level="digest")
        self.assertEqual(self.replay_json()["digests_compared"], 5 * 3)
        self.set_release(7)
        run = self.replay_app(code=harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"comm [01] \(rank 0 of 1\), launch 1 of its graph: result outputPtr differs")

    def test_another_seed_is_a_divergence(self):
        self.record_app()
        run = self.replay_app("--fault", code=harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"curandSetPseudoRandomGeneratorSeed of comm 0 .*: seed is 8, recorded 7")


class WithCollectives(DeviceJobs):
    PROGRAM = "cuda_random"

    def test_solo_replays_are_bit_for_bit(self):
        self.check_replays(["--reduce"])


if __name__ == "__main__":
    harness.main()
