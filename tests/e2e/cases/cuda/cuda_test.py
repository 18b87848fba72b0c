"""Device buffers: recorded and replayed on the simulated driver of tests/fakes/cuda, whose streams run late."""
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402


class Cuda(DeviceJobs):
    PROGRAM = "cuda_steps"

    def test_runs_without_deja(self):
        run = self.checked(self.command([harness.app(self.PROGRAM)]))
        self.assertRegex(run.stdout, r"rank 0 of 1: seeds \w+, result \w+\n")

    def test_solo_replays_are_bit_for_bit(self):
        self.check_replays(["--unseeded"])

    def test_the_legacy_stream(self):
        self.check_replays(["--unseeded", "--legacy", "--steps=3"])

    def test_buffers_larger_than_the_smallest_pinned_one(self):
        self.check_replays(["--unseeded", "--count=100000", "--steps=2"], ranks=(1,))

    def test_inputs_and_results_are_digested_where_they_came(self):
        self.checked(self.record(self.PROGRAM, ["--steps=2"], n=2))
        events = self.show_json("--rank", "1", "--kind", "results")
        # In each step: two all-reduces, a receive, an all-gather, a broadcast; inputs of four and of the send.
        self.assertEqual(len([event for event in events if event["outputs"]]), 2 * 9)
        # The send has no result, and says when it is done.
        sends = {e["seq_on_comm"] for e in self.show_json("--rank", "1", "--kind", "enter") if e["call"] == "Send"}
        self.assertEqual({event["seq_on_comm"] for event in events if not event["outputs"]}, sends)
        self.assertEqual(len(sends), 2)

    def test_a_divergence_is_found_at_its_operation(self):
        self.checked(self.record(self.PROGRAM, n=2))
        run = self.deja("replay", self.trace_path(), "--rank", "1", "--", harness.app(self.PROGRAM), "--fault=3")
        self.checked(run, harness.EXIT_DIVERGED)
        # Four operations on the first communicator a step.
        self.assertRegex(run.stdout, r"AllReduce #9 of comm 0 \(rank 1 of 2\): input sendbuff differs")

    def test_inputs_of_a_group_are_what_its_end_finds(self):
        """A kernel after the send, in its group, changes what is sent."""
        self.check_replays(["--unseeded", "--late-inputs", "--steps=3"])
        sent, came = ({event["seq_on_comm"]: event["outputs"][0]["hash"]
                       for event in self.show_json("--rank", str(rank), "--kind", "results")
                       if event["comm"] == 0 and event["outputs"] and event["seq_on_comm"] in self.of(rank, call)}
                      for rank, call in ((0, "Send"), (1, "Recv")))
        self.assertEqual(len(sent), 3)
        self.assertEqual(list(sent.values()), list(came.values()))
        self.assertNotIn("differ", self.checked(self.deja("check", self.trace_path())).stdout)

    def of(self, rank, call):
        return {e["seq_on_comm"] for e in self.show_json("--rank", str(rank), "--kind", "enter") if e["call"] == call}

    def test_captured_calls_are_left_alone(self):
        self.check_replays(["--unseeded", "--steps=2", "--capture"])

    def test_a_crash_keeps_what_streams_had_delivered(self):
        self.record(self.PROGRAM, ["--steps=2", "--end=crash"], n=2)
        events = self.show_json("--rank", "1", "--kind", "results")
        self.assertEqual(len([event for event in events if event["outputs"]]), 2 * 9)
        self.assertEqual(len(events), 2 * 10)

    def test_a_send_that_is_never_received_does_not_end_in_a_replay(self):
        process = self.start(self.record_argv(self.PROGRAM, ["--steps=2", "--count=500000", "--end=unreceived"], n=2))
        try:
            process.communicate(timeout=4)
            self.fail("it has come to its end")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=60)
        self.assertNotIn(b"the send is done", out)
        run = self.checked(self.replay(0))
        self.assertNotIn("the send is done", run.stdout)
        self.assertIn("rank 0: the end of the recording is reached: SIGTERM", run.stdout)

    def test_questions_of_the_driver_are_not_recorded(self):
        """Its clocks, entropy, threads and files are other ones in each run, and no events: only the program's seeds
        are."""
        self.checked(self.record(self.PROGRAM, ["--unseeded", "--steps=2"], n=2))
        inputs = [event["call"] for event in self.show_json("--rank", "0", "--kind", "input") if event["thread"] == "0"]
        self.assertEqual(inputs, ["getrandom"] * 2)
        threads = {event["thread"] for event in self.show_json("--rank", "0")}
        self.assertEqual(threads, {"0", "deja-cuda"})
        self.assertNotIn("cuda-sim", self.deja("show", self.trace_path(), "--rank", "0").stdout)

    def test_no_device(self):
        for env in ({"CUDA_VISIBLE_DEVICES": ""}, {"CUDA_SIM_DEVICES": "0"}):
            run = self.record(self.PROGRAM, n=1, env=env)
            self.assertRegex(run.stderr, r"cuInit\(0\) returned 100")
            self.assertEqual(run.code, 1)


class CudaCollectives(DeviceJobs):
    """All collectives, types and operators, in place and not, groups, parts of a communicator, memory by NCCL."""
    PROGRAM = "cuda_collectives"

    def test_prints_the_same_without_deja(self):
        plain = self.checked(self.launch(self.PROGRAM, n=2))
        recorded = self.check_replays([])
        for rank in (0, 1):
            self.assertEqual(self.rank_line(plain, rank), self.rank_line(recorded, rank))

    def test_three_ranks_unseeded(self):
        self.check_replays(["--unseeded", "--count=33"], n=3, ranks=(0, 2))

    def test_managed_and_pinned_buffers(self):
        for kind in ("managed", "pinned"):
            with self.subTest(kind):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                self.check_replays(["--unseeded", "--count=50", f"--memory={kind}"], ranks=(1,))

    def test_larger_than_a_buffer_of_deja(self):
        self.check_replays(["--unseeded", "--count=20000"], ranks=(1,))

    def test_communicators_that_do_not_block(self):
        self.check_replays(["--unseeded", "--count=33", "--nonblocking"])

    def test_a_divergence_is_found_at_its_call(self):
        self.checked(self.record(self.PROGRAM, ["--count=33"], n=2))
        run = self.deja("replay", self.trace_path(), "--rank", "1", "--", harness.app(self.PROGRAM), "--count=33",
                        "--fault=40")
        self.checked(run, harness.EXIT_DIVERGED)
        self.assertIn("input sendbuff differs", run.stdout)


class CudaRuntime(DeviceJobs):
    """A program on CUDA's runtime: what that keeps for a thread is as it is without Deja."""
    PROGRAM = "cuda_runtime"

    def states(self, run, rank):
        return [line for line in run.stdout.splitlines() if line.startswith(f"rank {rank} after ")]

    def test_the_last_error_the_device_and_the_capture_mode_stay(self):
        plain = self.checked(self.launch(self.PROGRAM, n=2))
        recorded = self.check_replays([])
        for rank in (0, 1):
            states = self.states(plain, rank)
            self.assertEqual(len(states), 8)
            for state in states:
                device = rank if "from another device" in state else 1 - rank
                self.assertRegex(state, rf": last error 101, device {device}, mode 1, capturing [01]$")
            self.assertEqual(self.states(recorded, rank), states)
            self.assertEqual(self.states(self.checked(self.replay(rank)), rank), states)
            self.assertEqual(self.rank_line(plain, rank), self.rank_line(recorded, rank))
            self.assertIn("kept error 101, then 0", self.rank_line(recorded, rank))

    def test_unseeded(self):
        self.check_replays(["--unseeded"])


if __name__ == "__main__":
    harness.main()
