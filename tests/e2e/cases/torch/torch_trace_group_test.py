"""deja.torch.TracePG: a recorded rank in a plain process, without preload, launcher and peers."""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import APPS, PYTHON, VERSION, TorchTest, of_rank  # noqa: E402

SEED = "5"


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchTraceGroup(TorchTest):
    def serve(self, rank, script, code=0, **env):
        paths = {"PATH": f"{harness.BUILD / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": harness.ROOT / "python"}
        run = self.command([PYTHON, APPS / "served.py", self.trace_path(), rank, APPS / f"{script}.py"],
                           env={"JOB_SEED": SEED, **paths, **env}, timeout=300)
        self.assertEqual(run.code, code, run)
        return run

    def assertServed(self, script, n, **env):
        """Each rank prints what the recorded one printed: losses and digests of all results, bit for bit."""
        run = self.record_job(script, n, JOB_SEED=SEED, **env)
        for rank in range(n):
            served = self.serve(rank, script, **env)
            self.assertIn("0 divergences", served.stdout)
            self.assertTrue(of_rank(rank, run.stdout))
            self.assertEqual(of_rank(rank, served.stdout), of_rank(rank, run.stdout))
        return run

    def test_every_operation(self):
        """Objects, point-to-point, works and futures, sparse tensors, a sub-group, the store; then other code."""
        self.assertServed("operations", 3)
        found = self.serve(1, "operations", code=4, CHANGE="input").stdout
        self.assertIn("divergence input allreduce 4 None {'dtype': 'int32', 'input_count': 33", found)
        self.assertRegex(found, r"\nallreduce #4 of group 0( \(default_pg\))?: its input, int32\[33\] sum, differs: "
                                r"recorded sum \d+, min \d+, max \d+, live sum \d+, min \d+, max \d+; "
                                r"recorded at operations\.py:\d+ in collectives")
        found = self.serve(1, "operations", code=4, CHANGE="operation").stdout
        self.assertIn("divergence signature broadcast 4 None", found)
        self.assertRegex(found, r"broadcast #4 of group 0.*: recorded allreduce int32\[33\] sum, "
                                r"live broadcast int32\[33\] root 1; recorded at operations\.py")
        warned = self.serve(1, "operations", CHANGE="input", ON_DIVERGENCE="warn")
        self.assertIn("1 divergences", warned.stdout)
        self.assertIn("its input, int32[33] sum, differs", warned.stderr)

    def test_data_parallel(self):
        self.assertServed("train", 2)
        # Another rank's data: the first gradients differ.
        found = self.serve(0, "train", code=4, JOB_SEED="6").stdout
        self.assertIn("divergence input ", found)
        self.assertIn("; recorded at train.py:", found)

    @unittest.skipUnless(VERSION and VERSION >= (2, 6), "newer than this torch")
    def test_fully_sharded(self):
        self.assertServed("train", 2, MODE="fsdp2")

    @unittest.skipUnless(VERSION and VERSION >= (2, 6), "newer than this torch")
    def test_tensor_and_pipeline_parallel(self):
        self.assertServed("sharded", 4)
        harness.shutil.rmtree(self.trace_path())
        self.assertServed("pipelining", 2)

    def test_what_a_trace_does_not_have(self):
        self.checked(self.record(PYTHON, [APPS / "pipeline.py"], n=2, env={"JOB_SEED": SEED}, level="digest",
                                 timeout=300))
        self.assertIn("recv #2 of group 0", self.serve(0, "pipeline", code=3).stdout)
        served = self.serve(0, "pipeline", code=3)
        self.assertIn("its result is not in the trace: its bytes were not kept; level full keeps those of results",
                      served.stdout)
        self.assertIn("deja.trace.TraceError: ", self.serve(7, "pipeline", code=1).stderr)


if __name__ == "__main__":
    harness.main()
