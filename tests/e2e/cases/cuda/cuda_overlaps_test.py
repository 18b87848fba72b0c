"""Launches of one captured call that would run at the same time: each has its own inputs and results."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from device_jobs import DeviceJobs  # noqa: E402

LAUNCHES = 30


class CudaOverlaps(DeviceJobs):
    PROGRAM = "cuda_overlaps"

    def results(self, seq):
        return [event["outputs"][0] for event in self.show_json("--rank", "0", "--kind", "results")
                if event["seq_on_comm"] == seq]

    def check_launches(self, args):
        args = [f"--launches={LAUNCHES}", *args]
        plain = self.checked(self.launch(self.PROGRAM, args, n=2))
        recorded = self.check_replays(args)
        self.assertEqual(self.rank_line(plain, 0), self.rank_line(recorded, 0))
        # The sum doubles what it finds: it reads what the launch before has left, and nothing in between.
        summed = self.results(1)
        read = [tensor["hash"] for tensor in summed if tensor["param"] == 0]
        brought = [tensor["hash"] for tensor in summed if tensor["param"] == 1]
        self.assertEqual([len(read), len(brought), len(set(brought))], [LAUNCHES] * 3)
        self.assertEqual(read[1:], brought[:-1])
        copied = self.results(2)
        self.assertEqual([t["hash"] for t in copied if t["param"] == 0], brought)
        self.assertEqual([t["hash"] for t in copied if t["param"] == 1], brought)

    def test_a_graph_that_is_instantiated_twice(self):
        self.check_launches([])

    def test_one_executable_graph_on_two_streams(self):
        self.check_launches(["--one-exec"])

    def test_ranks_that_compute_their_collectives(self):
        args = [f"--launches={LAUNCHES}"]
        recorded = self.checked(self.record(self.PROGRAM, args, n=2, level="digest"))
        run = self.checked(self.deja("replay", self.trace_path(), "--all"))
        self.assertEqual(sorted(line for line in run.stdout.splitlines() if " of 2: result " in line),
                         sorted(line for line in recorded.stdout.splitlines() if " of 2: result " in line))


if __name__ == "__main__":
    harness.main()
