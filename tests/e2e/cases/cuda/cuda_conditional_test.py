"""CUDA graphs with conditional nodes: collectives beside one are served; those in its body are said to be missing."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

IN_BODY = "captured into the body of a conditional node of a CUDA graph"


class CudaConditional(DeviceJobs):
    PROGRAM = "cuda_conditional"

    def test_collectives_before_and_after_the_node(self):
        for kind in range(3):
            with self.subTest(kind=kind):
                recorded = self.check_replays(["--unseeded", f"--kind={kind}"], ranks=(kind % 2,))
                calls = self.show_json("--rank", "0", "--kind", "enter")
                self.assertEqual([c["call"] for c in calls if "seq_on_comm" in c], ["AllReduce", "AllGather"])
                results = [e["seq_on_comm"] for e in self.show_json("--rank", "0", "--kind", "results")]
                self.assertEqual(results.count(2), 2 * 12)
                self.assertTrue(self.rank_line(recorded, 1))
                (self.dir / "run.deja").rename(self.dir / f"kind{kind}.deja")

    def test_it_runs_as_without_deja(self):
        for kind in range(3):
            plain = self.checked(self.launch(self.PROGRAM, [f"--kind={kind}"], n=2))
            recorded = self.checked(self.record(self.PROGRAM, [f"--kind={kind}"], n=2, trace=f"{kind}.deja"))
            self.assertEqual(self.rank_line(plain, 1), self.rank_line(recorded, 1))

    def check_inside(self, *args):
        """The program runs; the recording and the replay say what is missing."""
        env = {"NCCL_GRAPH_MIXING_SUPPORT": 0}
        plain = self.checked(self.launch(self.PROGRAM, ["--inside", *args], n=2, env=env))
        recorded = self.checked(self.record(self.PROGRAM, ["--inside", *args], n=2, env=env))
        self.assertEqual(self.rank_line(plain, 0), self.rank_line(recorded, 0))
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertIn(f"not recorded: the data of calls {IN_BODY}", info)
        run = self.replay(1)
        self.assertNotEqual(run.code, 0)
        self.assertIn(f"cannot be served: it is {IN_BODY}", run.stdout + run.stderr)

    def test_collectives_in_a_body(self):
        self.check_inside("--kind=0")

    def test_collectives_in_a_loop_of_a_program_that_uses_dlsym(self):
        self.check_inside("--kind=1", "--dlsym")

    def test_nodes_of_nccl_in_a_body_fail_as_without_deja(self):
        plain = self.launch(self.PROGRAM, ["--inside"], n=1)
        recorded = self.record(self.PROGRAM, ["--inside"], n=1)
        self.assertEqual((plain.code != 0, recorded.code != 0), (True, True))
        self.assertIn("cuGraphInstantiateWithFlags(&exec, graph, 0) returned 1", plain.stderr)
        self.assertIn("cuGraphInstantiateWithFlags(&exec, graph, 0) returned 1", recorded.stderr)


if __name__ == "__main__":
    harness.main()
