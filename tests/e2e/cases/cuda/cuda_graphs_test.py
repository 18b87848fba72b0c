"""CUDA graphs: calls that are captured once and launched many times, each launch recorded and served."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

# An all-reduce, a send, a receive, an all-gather, a broadcast.
CALLS = 5


class CudaGraphs(DeviceJobs):
    PROGRAM = "cuda_graphs"

    def results(self, rank):
        return self.show_json("--rank", str(rank), "--kind", "results")

    def test_runs_without_deja_and_prints_the_same(self):
        plain = self.checked(self.launch(self.PROGRAM, ["--launches=5"], n=2))
        recorded = self.checked(self.record(self.PROGRAM, ["--launches=5"], n=2))
        self.assertEqual(self.rank_line(plain, 0), self.rank_line(recorded, 0))
        self.assertEqual(self.rank_line(plain, 1), self.rank_line(recorded, 1))

    def test_a_hundred_launches_are_replayed_bit_for_bit(self):
        self.check_replays(["--unseeded"])
        calls = self.show_json("--rank", "0", "--kind", "enter")
        self.assertEqual(sum("seq_on_comm" in call for call in calls), CALLS)
        outputs = [e for e in self.results(0) if e["seq_on_comm"] == 1]
        self.assertGreaterEqual(len(outputs), 100)
        hashes = {output["hash"] for event in outputs for output in event["outputs"]}
        self.assertGreater(len(hashes), 90)

    def test_several_graphs_and_two_ways_to_run_one(self):
        self.check_replays(["--unseeded", "--launches=20", "--graphs=3", "--two-execs", "--thread-local"])

    def test_launched_on_another_stream_than_captured(self):
        self.check_replays(["--unseeded", "--launches=20", "--on-second"], ranks=(1,))

    def test_captured_again_for_each_launch(self):
        self.check_replays(["--unseeded", "--launches=20", "--again"], ranks=(0,))

    def test_updated_before_each_launch(self):
        self.check_replays(["--unseeded", "--launches=20", "--update"])
        # Each capture is a call of its own, which is launched once, but the first one, which never is. An all-reduce
        # has two results, what it read and what it brought.
        launched = [e["seq_on_comm"] for e in self.results(0)]
        self.assertEqual([launched.count(1 + CALLS * capture) for capture in range(21)], [0] + [2] * 20)

    def test_updated_and_destroyed(self):
        self.check_replays(["--unseeded", "--launches=12", "--update", "--destroy"], ranks=(0,))

    def test_an_update_that_the_driver_refuses(self):
        self.check_replays(["--unseeded", "--launches=8", "--regrown"], ranks=(1,))

    def test_a_graph_instantiated_from_a_clone(self):
        self.check_replays(["--unseeded", "--launches=20", "--clone", "--destroy"])
        self.assertEqual([e["seq_on_comm"] for e in self.results(0)].count(1), 2 * 20)

    def test_destroyed_as_soon_as_launched(self):
        self.check_replays(["--unseeded", "--launches=12", "--again", "--destroy"], ranks=(0,))

    def test_nodes_that_get_other_arguments(self):
        recorded = self.check_replays(["--unseeded", "--launches=20", "--set-params"])
        self.assertNotEqual(self.rank_line(recorded, 0),
                            self.rank_line(self.checked(self.launch(self.PROGRAM, ["--launches=20"], n=2)), 0))

    def test_updated_graphs_run_as_without_deja(self):
        for args in (["--update"], ["--clone"], ["--regrown", "--destroy"], ["--set-params"]):
            with self.subTest(args=args):
                trace = f"{args[0].strip('-')}.deja"
                plain = self.checked(self.launch(self.PROGRAM, ["--launches=6", *args], n=2))
                recorded = self.checked(self.record(self.PROGRAM, ["--launches=6", *args], n=2, trace=trace))
                self.assertEqual(self.rank_line(plain, 0), self.rank_line(recorded, 0))

    def test_larger_than_the_smallest_buffer(self):
        self.check_replays(["--unseeded", "--launches=6", "--count=100000"], ranks=(1,))

    def test_a_divergence_names_its_launch(self):
        self.checked(self.record(self.PROGRAM, ["--launches=20"], n=2))
        run = self.deja("replay", self.trace_path(), "--rank", "1", "--", harness.app(self.PROGRAM), "--launches=20",
                        "--fault=7")
        self.checked(run, harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"AllReduce #1 of comm 0 \(rank 1 of 2\), launch 7 of its graph: "
                                     r"input sendbuff differs")

    def test_more_launches_than_were_recorded_are_a_divergence(self):
        self.checked(self.record(self.PROGRAM, ["--launches=5"], n=2))
        run = self.deja("replay", self.trace_path(), "--rank", "0", "--", harness.app(self.PROGRAM), "--launches=6")
        self.checked(run, harness.EXIT_DIVERGED)
        self.assertIn("the recorded run launched its graph 5 times", run.stdout)

    def test_graphs_are_left_as_they_are_when_asked(self):
        plain = self.checked(self.launch(self.PROGRAM, ["--launches=5"], n=2))
        recorded = self.checked(self.record(self.PROGRAM, ["--launches=5"], n=2, options=["--cuda-graphs=leave"]))
        self.assertEqual(self.rank_line(plain, 0), self.rank_line(recorded, 0))
        self.assertIn("which --cuda-graphs=leave leaves as it is", self.checked(self.deja("info", self.trace_path())).stdout)
        run = self.replay(0)
        self.assertNotEqual(run.code, 0)
        self.assertIn("graph", run.stdout + run.stderr)

    def test_a_recording_that_was_killed_is_replayed_as_far_as_it_goes(self):
        self.record(self.PROGRAM, ["--launches=20", "--die-at=7"], n=2)
        run = self.deja("replay", self.trace_path(), "--rank", "1", "--", harness.app(self.PROGRAM), "--launches=20")
        self.checked(run)
        self.assertIn("the end of the recording", run.stdout)
        self.assertRegex(run.stdout, r"digests compared, all equal")


if __name__ == "__main__":
    harness.main()
