"""Programs of tests/e2e/apps/cuda on NCCL: recorded, and each rank replayed alone, bit for bit."""
import re
from pathlib import Path

import check
import digits
import harness
from check import limit


class Collectives(check.Check):
    PROGRAM = "cuda_collectives"

    def args(self):
        return ["--unseeded", *self.small(["--count=33"], [])]

    @limit(120)
    def test_collectives_2_ranks(self):
        """all collectives, ten types, five operators, in place and not, PreMulSum, registered and NCCL's memory"""
        self.check_all_replays(self.args(), n=2)

    @limit(180)
    def test_collectives_4_ranks(self):
        """the same"""
        self.check_all_replays(self.args(), n=4)

    @limit(120)
    def test_collectives_nonblocking(self):
        """the same with communicators that do not block"""
        self.check_all_replays([*self.args(), "--nonblocking"], n=2)

    @limit(120)
    def test_collectives_pinned_and_managed(self):
        """the same with pinned, then managed buffers"""
        for kind in ("pinned", "managed"):
            self.check_all_replays(["--unseeded", "--count=50", f"--memory={kind}"], n=2,
                                   options=["--force"])

    @limit(120)
    def test_collectives_same_as_without(self):
        """seeded: the same results without Deja, recorded and replayed"""
        plain = self.checked(self.launch(self.PROGRAM, ["--count=33"], n=2))
        recorded = self.check_all_replays(["--count=33"], n=2)
        for rank in (0, 1):
            self.assertEqual(self.rank_line(plain, rank), self.rank_line(recorded, rank))


class Steps(check.Check):
    PROGRAM = "cuda_steps"

    def test_streams_2_ranks(self):
        """two streams, two communicators, groups, buffers that the next kernel overwrites"""
        self.check_all_replays(["--unseeded"], n=2)

    def test_streams_4_ranks(self):
        """the same"""
        self.check_all_replays(["--unseeded"], n=4)

    def test_legacy_stream(self):
        """everything on the legacy default stream"""
        self.check_all_replays(["--unseeded", "--legacy"], n=2)

    def test_per_thread_stream(self):
        """everything on the thread's default stream"""
        self.check_all_replays(["--unseeded", "--per-thread"], n=2)

    @limit(120)
    def test_large_buffers(self):
        """buffers of many megabytes, through the pinned memory that Deja has"""
        self.check_all_replays(["--unseeded", f"--count={self.small(100000, 20000000)}", "--steps=2"], n=2)

    def test_digests(self):
        """level digest: digests of all inputs and results, which two recordings of the same program share"""
        for trace in ("a.deja", "b.deja"):
            self.checked(self.record(self.PROGRAM, ["--steps=2"], n=2, level="digest", trace=trace))
        first, second = (sorted((event["comm"], event["seq_on_comm"], tensor["param"], tensor["hash"])
                                for event in self.show_json("--rank", "1", "--kind", "results", trace=trace)
                                for tensor in event["outputs"]) for trace in ("a.deja", "b.deja"))
        self.assertEqual(len(first), 2 * 9)
        self.assertEqual(first, second)

    def test_digests_by_kernel(self):
        """level digest: digests by kernels on the device are those of copies on the host"""
        args = ["--steps=2", f"--count={self.small(50000, 5000000)}"]
        hashes = []
        for where in ("device", "host"):
            trace = f"{where}.deja"
            self.checked(self.record(self.PROGRAM, args, n=2, level="digest", trace=trace,
                                     options=["--device-digests", where]))
            hashes.append(sorted((event["comm"], event["seq_on_comm"], tensor["param"], tensor["hash"])
                                 for event in self.show_json("--rank", "0", "--kind", "results", trace=trace)
                                 for tensor in event["outputs"]))
        self.assertEqual(len(hashes[0]), 2 * 9)
        self.assertEqual(hashes[0], hashes[1])

    def test_divergence(self):
        """a changed input is found at its operation"""
        self.checked(self.record(self.PROGRAM, n=2))
        run = self.deja("replay", self.trace_path(), "--rank", "1", "--", harness.app(self.PROGRAM), "--fault=3")
        self.checked(run, harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"AllReduce #9 of comm 0 \(rank 1 of 2\): input sendbuff differs")

    def test_crash(self):
        """what the streams had delivered before a crash is in the trace"""
        self.record(self.PROGRAM, ["--steps=2", "--say-steps", "--end=crash"], n=2)
        events = self.show_json("--rank", "1", "--kind", "results")
        self.assertEqual(len([event for event in events if event["outputs"]]), 2 * 9)

    def test_no_visible_device(self):
        """CUDA_VISIBLE_DEVICES is empty: the program gets CUDA's own error"""
        env = {"CUDA_VISIBLE_DEVICES": ""}
        for run in (self.launch(self.PROGRAM, n=1, env=env), self.record(self.PROGRAM, n=1, env=env)):
            self.assertRegex(run.stderr, r"cuInit\(0\) returned 100")
            self.assertEqual(run.code, 1)


class Graphs(check.Check):
    PROGRAM = "cuda_graphs"

    def test_graphs_2_ranks(self):
        """a CUDA graph of five calls, launched a hundred times"""
        self.check_all_replays(["--unseeded"], n=2)

    @limit(120)
    def test_graphs_4_ranks(self):
        """the same"""
        self.check_all_replays(["--unseeded"], n=4)

    def test_graphs_several(self):
        """three graphs, each instantiated twice, captured in the thread-local mode"""
        self.check_all_replays(["--unseeded", "--launches=20", "--graphs=3", "--two-execs", "--thread-local"], n=2)

    def test_graphs_other_stream(self):
        """launched on another stream than captured"""
        self.check_all_replays(["--unseeded", "--launches=20", "--on-second"], n=2)

    def test_graphs_captured_again(self):
        """captured again for each launch"""
        self.check_all_replays(["--unseeded", "--launches=20", "--again"], n=2)

    def check_at_the_same_time(self, args):
        """Each launch reads what the one before has left."""
        self.PROGRAM = "cuda_overlaps"
        self.check_all_replays(args, n=2)
        results = self.show_json("--rank", "0", "--kind", "results")
        tensors = [event["outputs"][0] for event in results if event["seq_on_comm"] == 1]
        read, brought = ([t["hash"] for t in tensors if t["param"] == param] for param in (0, 1))
        self.assertEqual([len(read), len(set(brought))], [60, 60])
        self.assertEqual(read[1:], brought[:-1])

    def test_graphs_at_the_same_time(self):
        """a graph instantiated twice, launched on two streams that only NCCL orders"""
        self.check_at_the_same_time([])

    def test_graphs_one_executable(self):
        """the same with one executable graph"""
        self.check_at_the_same_time(["--one-exec"])


class Fold(check.Check):
    """Ranks replayed at the same time on one device."""
    PROGRAM = "cuda_steps"

    def check_fold(self, n, level):
        recorded = self.checked(self.record(self.PROGRAM, ["--unseeded"], n=n, level=level))
        run = self.checked(self.deja("replay", self.trace_path(), "--all", "--devices", "1"))
        for rank in range(n):
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))
            self.assertRegex(run.stdout, rf"rank {rank}: exit 0, the same as recorded; .* all equal")
        return run

    @limit(120)
    def test_fold_served_4_ranks(self):
        """four ranks at once, served"""
        self.check_fold(4, "full")

    @limit(120)
    def test_fold_computed_2_ranks(self):
        """level digest: two ranks at once compute their collectives, which have the recorded digests"""
        self.assertIn("computed", self.check_fold(2, "digest").stdout)

    @limit(180)
    def test_fold_turns_2_ranks(self):
        """level digest: two ranks take turns on the device, whose driver swaps them out and in"""
        args = ["--unseeded", *self.small([], ["--count=20000000", "--steps=2"])]
        env = self.simulated_memory(1 << 29) if self.machine.simulated else {}
        recorded = self.checked(self.record("cuda_turns", args, n=2, level="digest", env=env))
        run = self.deja("replay", self.trace_path(), "--all", "--devices", "1", "--turns", "1", "--allow-file", self.board(), env=env)
        lacks = re.search(r"the ranks could not take turns: (.*)", run.stderr)
        if lacks:
            self.skipTest(lacks.group(1))
        self.checked(run)
        for rank in range(2):
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))
        self.detail = re.search(r"device memory was (swapped out \d+ times?)", run.stderr).group(1)


class Curand(check.Check):
    PROGRAM = "cuda_random"

    def need(self):
        super().need()
        if self.machine.no_curand:
            self.skipTest(self.machine.no_curand)

    def test_curand_2_ranks(self):
        """two generators of cuRAND on two streams, what they drew summed over the ranks"""
        self.check_all_replays(["--reduce"], n=2)

    def test_curand_verified(self):
        """level digest: a replay draws again, and compares"""
        recorded = self.checked(self.record_single(harness.app(self.PROGRAM), options=["--level", "digest"]))
        replay = self.checked(self.replay(0))
        self.assertEqual(harness.without_report(replay.stdout), recorded.stdout)
        self.assertIn("15 digests compared, all equal", replay.stdout)


class Digits(check.Check):
    """The example trainer, its numbers on the device: a thread of its own reduces gradients on a stream of its own."""
    PROGRAM = "cuda_digits"

    def rank_line(self, run, rank):
        return digits.weights(run)[rank]

    def args(self, mode="ddp"):
        return ["--device=cuda", f"--mode={mode}", *self.small(["--steps=8", "--batch=8"], ["--steps=60"])]

    @limit(120)
    def test_digits_ddp_2_ranks(self):
        """the digits example, unseeded: buckets of gradients all-reduced while the backward pass runs"""
        self.check_all_replays(self.args(), n=2)

    @limit(120)
    def test_digits_ddp_4_ranks(self):
        """the same"""
        self.check_all_replays(self.args(), n=4)

    @limit(120)
    def test_digits_sharded(self):
        """the digits example: reduce-scatter and all-gather"""
        self.check_all_replays(self.args("sharded"), n=2)

    @limit(120)
    def test_digits_pipeline(self):
        """the digits example: send and receive between two stages"""
        self.check_all_replays(self.args("pipeline"), n=2)

    @limit(180)
    def test_digits_hybrid(self):
        """the digits example: stages and replicas, a communicator each"""
        self.check_all_replays(self.args("hybrid"), n=4)

    @limit(120)
    def test_digits_same_as_without(self):
        """seeded: the same weights without Deja, twice, and recorded"""
        args = [*self.args(), "--seed=7"]
        runs = [self.checked(self.launch(self.PROGRAM, args, n=2)) for _ in range(2)]
        runs.append(self.checked(self.record(self.PROGRAM, args, n=2)))
        for run in runs[1:]:
            self.assertEqual(digits.weights(run), digits.weights(runs[0]))

    @limit(120)
    def test_digits_from_a_checkpoint(self):
        """what is on the device is saved, and replays begin there"""
        recorded = self.checked(self.record(self.PROGRAM, self.args(), n=2, options=["--checkpoint-every", "3"]))
        for rank, run in enumerate(self.replays(2, ["--from-step", "7"])):
            self.checked(run)
            self.assertIn("from the checkpoint at step 6\n", run.stderr)
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))

    @limit(120)
    def test_digits_computed(self):
        """level digest: two ranks at once compute their collectives, which have the recorded digests"""
        recorded = self.checked(self.record(self.PROGRAM, self.args(), n=2, level="digest"))
        run = self.checked(self.deja("replay", self.trace_path(), "--all", "--devices", "1"))
        self.assertEqual(digits.weights(run), digits.weights(recorded))
        self.assertIn("computed", run.stdout)


class Others(check.Check):
    @limit(240)
    def test_nccl_tests(self):
        """the programs of nccl-tests in the folder of --nccl-tests, one rank, checking their results"""
        if not self.machine.nccl_tests:
            self.skipTest("no --nccl-tests DIR was given")
        programs = sorted(Path(self.machine.nccl_tests).glob("*_perf"))
        self.assertTrue(programs, f"no *_perf in {self.machine.nccl_tests}")
        for program in programs:
            args = ["-b", "8", "-e", "1M", "-f", "8", "-g", "1", "-n", "2", "-w", "1", "-c", "1"]
            self.checked(self.record(program, args, n=1, options=["--force"]))
            replay, = self.replays(1)
            self.checked(replay)
            self.assertIn("Out of bounds values : 0 OK", replay.stdout)
        self.detail = f"{len(programs)} programs"

    @limit(180)
    def test_compute_sanitizer(self):
        """compute-sanitizer (memcheck) has nothing to say of a rank, recorded and replayed"""
        if not self.machine.sanitizer:
            self.skipTest("there is no simulated compute-sanitizer" if self.machine.simulated else
                          "compute-sanitizer is not on the path")
        watched = [self.machine.sanitizer, "--error-exitcode", "88"]
        args = ["--unseeded", "--steps=2"]
        plain = self.launch(watched[0], [*watched[1:], harness.app("cuda_steps"), *args], n=1)
        if plain.code != 0:
            self.skipTest(f"it does not work here without Deja: {(plain.stdout + plain.stderr).strip().splitlines()[-1]}")
        self.checked(self.record(watched[0], [*watched[1:], harness.app("cuda_steps"), *args], n=1))
        replay = self.deja("replay", self.trace_path(), "--rank", "0", "--", *watched, harness.app("cuda_steps"), *args)
        self.checked(replay)

    def test_doctor(self):
        """deja doctor says what it has found here"""
        run = self.deja("doctor")
        self.assertIn(run.code, (0, 1), run)
        self.assertTrue(re.search(r"\S", run.stdout))
        if not self.machine.simulated:
            (self.settings.out / "doctor.txt").write_text(run.stdout)
