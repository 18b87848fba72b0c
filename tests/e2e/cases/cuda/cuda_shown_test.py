"""Tensors in device memory that the program shows (deja_tensor) or registers for checkpoints."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

STEPS = 6


class CudaShown(DeviceJobs):
    PROGRAM = "cuda_shown"

    def shown(self, rank, trace="run.deja"):
        return [event["tensor"] for event in self.show_json("--rank", str(rank), "--kind", "snapshot", trace=trace)]

    def test_contents_are_recorded_and_compared(self):
        self.check_replays(["--unseeded"])
        tensors = self.shown(1)
        self.assertEqual(len(tensors), STEPS)
        self.assertEqual(len({tensor["hash"] for tensor in tensors}), STEPS)
        run = self.checked(self.replay(0))
        # The input and the result of an all-reduce in place are one; and what is shown.
        self.assertRegex(run.stdout, r"\d+ digests compared, all equal")

    def test_digests_of_the_device_are_those_of_the_bytes(self):
        traces = ("full.deja", "digest.deja", "host.deja")
        self.checked(self.record(self.PROGRAM, ["--count=50000"], n=2, trace=traces[0]))
        self.checked(self.record(self.PROGRAM, ["--count=50000"], n=2, level="digest", trace=traces[1]))
        self.checked(self.record(self.PROGRAM, ["--count=50000"], n=2, level="digest", trace=traces[2],
                                 options=["--device-digests", "host"]))
        hashes = [[tensor["hash"] for tensor in self.shown(1, trace)] for trace in traces]
        self.assertEqual(len(set(hashes[0])), STEPS)
        self.assertEqual(hashes[0], hashes[1])
        self.assertEqual(hashes[0], hashes[2])

    def test_a_difference_between_two_collectives_is_found_where_it_starts(self):
        self.checked(self.record(self.PROGRAM, n=2))
        run = self.deja("replay", self.trace_path(), "--rank", "1", "--", harness.app(self.PROGRAM), "--fault=4")
        self.checked(run, harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"(?s)step 3.*total|total.*step 3")
        self.assertIn("element", run.stdout)

    def test_replays_start_at_a_checkpoint(self):
        recorded = self.checked(self.record(self.PROGRAM, ["--unseeded"], n=2, options=["--checkpoint-every", "2"]))
        for rank in (0, 1):
            run = self.checked(self.replay(rank, options=["--from-step", "4"]))
            self.assertIn("from the checkpoint at step 4\n", run.stderr)
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))


if __name__ == "__main__":
    harness.main()
