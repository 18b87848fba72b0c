"""How a job of torch.distributed gets its ranks: by torchrun, with restarts, spawned or forked by the program."""
import socket
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import APPS, PYTHON, REDIRECTIONS, VERSION, TorchTest, of_rank  # noqa: E402


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchLaunches(TorchTest):
    def assertSpawnedRanksReplay(self, rendezvous, *method):
        run = self.checked(self.deja("record", "--out", self.trace_path(), "--", PYTHON, APPS / "standalone" / "spawned.py",
                                     rendezvous, *method, timeout=300))
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001"])
        self.assertRanksReplay(run, 2)

    def test_ranks_that_the_program_spawns_meet_by_a_file(self):
        self.assertSpawnedRanksReplay(f"file://{self.dir}/rendezvous")

    def test_ranks_that_the_program_spawns_meet_by_tcp(self):
        self.assertSpawnedRanksReplay(self.free_address())

    def test_ranks_that_the_program_spawns_with_tensors_and_a_queue(self):
        """Their descriptors are the launcher's, which is not there in a replay; nor is its folder for listeners."""
        program = APPS.parent / "frameworks" / "spawn_tcp.py"
        run = self.checked(self.deja("record", "--out", self.trace_path(), "--", PYTHON, program, harness.free_port(), timeout=300))
        self.assertRegex(run.stdout, r"ends \[\(0, .*\), \(1, .*\)\]")
        self.assertRanksReplay(run, 2)

    def test_ranks_that_the_program_forks(self):
        self.assertSpawnedRanksReplay(self.free_address(), "fork")

    def free_address(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return f"tcp://127.0.0.1:{free.getsockname()[1]}"

    def record_by_launcher(self, *options, env=None, program="train"):
        launcher = ["--standalone"]
        if VERSION < (2, 0):
            # Debian's torch has one port for all jobs that are --standalone.
            where = f"localhost:{harness.free_port()}"
            launcher = [*REDIRECTIONS, "--rdzv_backend", "c10d", "--rdzv_endpoint", where]
        command = [PYTHON, "-m", "torch.distributed.run", *launcher, *options, "--nproc_per_node", "2", APPS / f"{program}.py"]
        return self.checked(self.deja("record", "--out", self.trace_path(), "--", *command, timeout=300, env=env))

    def test_a_restart_is_an_attempt_of_the_same_trace(self):
        # Torch 2.9 lets the ranks of a restart find the addresses of those before in the launcher's store, with and
        # without Deja. It does not if each start has a store of its own.
        env = {"MODE": "restart", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        run = self.record_by_launcher("--max_restarts", "1", env=env)
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00000.1", "rank-00001", "rank-00001.1"])
        ends = {(r["rank"], r["attempt"]): r for r in self.info_json()["ranks"]}
        self.assertEqual([ends[rank, 1].get("exit_code") for rank in range(2)], [0, 0], ends)
        self.assertEqual(ends[1, 0].get("exit_code"), 1, ends)
        self.assertEqual(sum(" weights " in line for line in run.stdout.splitlines()), 2)
        self.checked(self.deja("verify", self.trace_path()))
        for rank in range(2):  # of several attempts the last is replayed
            replayed = self.checked(self.replay(rank, env={"MASTER_PORT": "1"}))
            self.assertIn("all equal", replayed.stdout)
            self.assertEqual(of_rank(rank, replayed.stdout), of_rank(rank, run.stdout)[-len(
                of_rank(rank, replayed.stdout)):])

    @unittest.skipUnless(VERSION and VERSION >= (2, 6), "a group without a named backend is newer than this torch")
    def test_torch_chooses_the_backend(self):
        run = self.record_by_launcher(program="default_backend")
        self.assertRanksReplay(run, 2)

    def test_the_elastic_launcher(self):
        run = self.record_by_launcher()
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001"])
        self.assertRanksReplay(run, 2)


if __name__ == "__main__":
    harness.main()
