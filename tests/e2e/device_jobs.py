"""What the cases with device buffers share: record a job, and replay each rank alone to the same line."""
import harness


class DeviceJobs(harness.DejaTest):
    PROGRAM = ""

    def simulated_memory(self, size):
        """The variables for devices of this many bytes in the simulated driver, which all processes with them share."""
        self.board().unlink(missing_ok=True)
        return {"CUDA_SIM_MEMORY": size, "CUDA_SIM_KEY": self.board()}

    def board(self):
        """The file by which processes share the simulated devices; a replay's driver must be let (--allow-file)."""
        return self.dir / "board"

    def rank_line(self, run, rank):
        return next(line for line in run.stdout.splitlines() if line.startswith(f"rank {rank} of "))

    def check_replays(self, args=(), n=2, ranks=(0, 1)):
        """Records, and replays each rank alone: the bytes on the device end as they did."""
        recorded = self.checked(self.record(self.PROGRAM, args, n=n))
        self.assertNotIn("not recorded", self.deja("info", self.trace_path()).stdout)
        for rank in ranks:
            run = self.checked(self.replay(rank))
            self.assertEqual(self.rank_line(run, rank), self.rank_line(recorded, rank))
        return recorded
