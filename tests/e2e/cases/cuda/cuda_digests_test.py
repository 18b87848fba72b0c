"""Digests that the (simulated) device makes of its buffers: the same as those of the bytes."""
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

REFUSED = "deja: digests of device buffers are made on the host: cuModuleLoadData returned error 218"


class CudaDigests(DeviceJobs):
    PROGRAM = "cuda_steps"
    ARGS = ("--count=50000", "--steps=3")  # large enough that a kernel digests them

    def digests(self, trace, *options, **kwargs):
        """What a recording at level digest has of each tensor of rank 1, by operation."""
        run = self.checked(self.record(self.PROGRAM, self.ARGS, n=2, level="digest", trace=trace,
                                       options=options, **kwargs))
        self.assertNotIn("not recorded", self.deja("info", self.trace_path(trace)).stdout)
        found = {}
        for event in self.show_json("--rank", "1", "--kind", "results", trace=trace):
            for tensor in event["outputs"]:
                del tensor["address"]
                found[event["comm"], event["seq_on_comm"], tensor["param"]] = tensor
        self.assertEqual(len(found), 3 * 9)
        return run, found

    def assertSameDigests(self, first, second):
        self.assertEqual(first.keys(), second.keys())
        for key, tensor in first.items():
            other = dict(second[key])
            tensor = dict(tensor)
            for of_order in ("sum", "sum_squares"):
                # Sums of the same numbers in another order; their magnitudes are below 1e8 here.
                self.assertTrue(math.isclose(tensor.pop(of_order), other.pop(of_order), rel_tol=1e-9, abs_tol=1e-3))
            self.assertEqual(tensor, other, key)

    def test_they_are_those_of_the_host(self):
        run, on_device = self.digests("device.deja")
        self.assertNotIn("deja: digests", run.stderr)
        self.assertSameDigests(on_device, self.digests("host.deja", "--device-digests=host")[1])

    def test_a_driver_that_refuses_the_kernels(self):
        refusing = {"CUDA_SIM_PTX": "no"}
        run, of_copies = self.digests("refused.deja", env=refusing)
        self.assertEqual(run.stderr.count(REFUSED), 2, run.stderr)  # once a rank
        self.assertSameDigests(of_copies, self.digests("device.deja")[1])
        run, _ = self.digests("host.deja", "--device-digests=host", env=refusing)
        self.assertNotIn("deja: digests", run.stderr)

    def test_it_is_the_kernel_that_makes_them(self):
        wrong = self.digests("wrong.deja", env={"CUDA_SIM_PTX": "wrong"})[1]
        right = self.digests("right.deja")[1]
        self.assertEqual([key for key in right if wrong[key]["hash"] == right[key]["hash"]], [])

    def test_replays_compare_with_them(self):
        self.check_replays([*self.ARGS, "--unseeded"])
        run = self.checked(self.replay(1))
        self.assertIn("12 digests compared, all equal", run.stdout)
        self.assertNotIn("deja: digests", run.stderr)

    def test_a_replay_has_the_device_make_them_too(self):
        # A replay has the recorded environment: the mistakes are the same only if it uses the kernels.
        self.checked(self.record(self.PROGRAM, self.ARGS, n=2, env={"CUDA_SIM_PTX": "wrong"}))
        self.assertIn("12 digests compared, all equal", self.checked(self.replay(1)).stdout)

    def test_a_divergence_is_found_at_its_operation(self):
        self.checked(self.record(self.PROGRAM, self.ARGS, n=2))
        run = self.deja("replay", self.trace_path(), "--rank", "1", "--", harness.app(self.PROGRAM), *self.ARGS,
                        "--fault=2")
        self.checked(run, harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"AllReduce #5 of comm 0 \(rank 1 of 2\): input sendbuff differs")
        self.assertRegex(run.stdout, r"recorded digest \w+, min 0, max 144, .*; live digest \w+, min 0")


if __name__ == "__main__":
    harness.main()
