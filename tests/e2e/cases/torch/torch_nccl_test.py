"""PyTorch's NCCL backend, on devices of the simulated driver: recorded under torchrun, and each rank replayed alone."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from simulated_torch import SITE, WHY_NOT, SimulatedTorchTest, of_rank  # noqa: E402

# What torch has on its side for when a job hangs, all of it switched on.
WATCHED = {"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "TORCH_NCCL_ENABLE_MONITORING": "1",
           "TORCH_NCCL_DESYNC_DEBUG": "1", "TORCH_NCCL_ENABLE_TIMING": "1"}


@unittest.skipUnless(SITE, WHY_NOT)
class TorchNccl(SimulatedTorchTest):
    def assertJobReplays(self, script, *args, **env):
        """Seeded, so that it can be compared with a run without Deja."""
        plain = self.run_without_deja(script, *args, JOB_SEED="3", **env)
        run = self.record_torchrun(script, *args, JOB_SEED="3", **env)
        self.assertSameOutput(plain, run)
        self.assertRanksReplay(run)
        return run

    def functions(self, rank=0):
        return {e["call"] for e in self.show_json("--rank", rank, "--kind", "enter")}

    def test_operations(self):
        self.assertJobReplays("nccl_operations", "reductions", "copies", "point_to_point", "asynchronous", "coalesced", "objects",
                              "groups")
        called = self.functions()
        for name in ("AllReduce", "Bcast", "Reduce", "AllGather", "ReduceScatter", "Send", "Recv", "RedOpCreatePreMulSum",
                     "GroupStart", "CommInitRankConfig"):
            self.assertIn(name, called)

    def test_groups_that_are_split_off_and_memory_of_nccl(self):
        self.assertJobReplays("nccl_operations", "split", "memory")
        called = self.functions()
        for name in ("CommSplit", "MemAlloc", "CommRegister", "CommDeregister"):
            self.assertIn(name, called)

    def test_operations_with_all_that_watches_them(self):
        self.assertJobReplays("nccl_operations", "reductions", "point_to_point", "asynchronous", "coalesced", **WATCHED)

    def test_operations_that_block(self):
        self.assertJobReplays("nccl_operations", "copies", "asynchronous", TORCH_NCCL_BLOCKING_WAIT="1")

    def test_gloo_and_nccl_in_one_job(self):
        self.assertJobReplays("nccl_mixed")
        called = self.functions()
        self.assertIn("AllReduce", called)
        self.assertIn("c10d_allreduce", called)

    def assertUnseededTrains(self, *args):
        first = self.record_torchrun("nccl_train", *args)
        self.assertRanksReplay(first)
        again = self.run_without_deja("nccl_train", *args)
        for rank in range(2):
            self.assertEqual(len(of_rank(rank, again.stdout)), len(of_rank(rank, first.stdout)))
            self.assertNotEqual(of_rank(rank, again.stdout), of_rank(rank, first.stdout), "it does the same each time by itself")

    def test_data_parallel(self):
        self.assertUnseededTrains()

    def test_fully_sharded(self):
        self.assertUnseededTrains("fsdp")
        called = self.functions()
        for name in ("AllGather", "ReduceScatter"):
            self.assertIn(name, called)

    def ends(self, what, code, first, second, **env):
        """Rank 0 entered a collective that rank 1 never entered; `first` and `second` is how each of them ends."""
        plain = self.run_without_deja("nccl_ends", what, code=code, JOB_SEED="3", **env)
        run = self.record_torchrun("nccl_ends", what, code=code, JOB_SEED="3", **env)
        # Behind that, how far rank 0 comes before it is ended is a matter of time.
        for rank in range(2):
            self.assertEqual(of_rank(rank, plain.stdout)[:3], of_rank(rank, run.stdout)[:3])
            self.assertEqual(len(of_rank(rank, run.stdout)[:3]), 3)
        info = self.checked(self.deja("info", self.trace_path())).stdout
        self.assertRegex(info, rf"rank 0: {first}, in step \d, after AllReduce #4 of comm 0\n")
        self.assertRegex(info, rf"rank 1: {second}, in step 1, after AllReduce #3 of comm 0\n")
        self.assertRegex(info, r"comm 0: rank 0 reached AllReduce #4; rank 1 never entered it: its last was AllReduce #3 at nccl_ends\.py:\d+ in ")
        replays = [self.replay_rank(rank, **env) for rank in range(2)]
        for rank, replayed in enumerate(replays):
            self.assertIn("all equal", replayed.stdout)
            self.assertEqual(of_rank(rank, replayed.stdout)[:3], of_rank(rank, run.stdout)[:3])
        return replays, run

    def test_a_rank_never_reaches_a_collective(self):
        """The watchdog gives up, writes what the flight recorder has, and ends the process."""
        watched = {**WATCHED, "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "500", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": self.dir / "flight_"}
        replays, run = self.ends("absent", 1, r"SIGABRT at libtorch_cuda\.so\+0x[0-9a-f]+", r"SIGTERM at nccl_ends\.py:\d+ in <module>",
                                 **watched)
        self.assertRegex(replays[0].stdout, "rank 0: SIGABRT .*, the same as recorded")
        self.assertIn("the end of the recording is reached: SIGTERM at nccl_ends.py", replays[1].stdout)
        for text in (run.stderr, replays[0].stderr):
            self.assertIn("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=7", text)
        self.assertEqual(len(list(self.dir.glob("flight_*"))), 2)  # and none by the replays, which write elsewhere

    def test_a_rank_ends_before_a_collective(self):
        replays, _ = self.ends("dies", 1, r"SIGTERM at \S+", "exit 3")
        self.assertIn("the end of the recording is reached: SIGTERM", replays[0].stdout)
        self.assertIn("exit 3, the same as recorded", replays[1].stdout)


if __name__ == "__main__":
    harness.main()
