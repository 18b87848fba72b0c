"""Jobs of torch.distributed over other backends for the CPU than gloo: plug-ins, MPI, UCC."""
import ctypes.util
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import APPS, PYTHON, VERSION, TorchTest, of_rank  # noqa: E402

HAS_DEVICES = VERSION and VERSION >= (2, 4)


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchBackends(TorchTest):
    def assertRecordsAndReplays(self, n, **env):
        """As without Deja but for what is not seeded, and all ranks alone."""
        plain = self.checked(self.launch(PYTHON, [APPS / "own_backend.py"], n=n, env=env))
        self.lose_what_the_job_left()
        run = self.record_job("own_backend", n, **env)
        for rank in range(n):
            before, now = (self.seeded_or_not(rank, ran.stdout) for ran in (plain, run))
            self.assertEqual(now[0], before[0])
            self.assertNotEqual(now[1], before[1])
        self.lose_what_the_job_left()
        self.assertRanksReplay(run, n)
        self.assertFindsNothing()
        return run

    def seeded_or_not(self, rank, output):
        lines = of_rank(rank, output)
        unseeded = [line for line in lines if line.startswith(f"rank {rank} unseeded ")]
        self.assertEqual(len(unseeded), 1, output)
        return [line for line in lines if line not in unseeded], unseeded

    def assertFindsNothing(self):
        """What a backend of Python's writes is no change by the program. A send that it refuses needs no receive."""
        self.assertEqual(self.checked(self.deja("check", self.trace_path(), "--json")).json()["findings"], [])

    def lose_what_the_job_left(self):
        (self.dir / "met").unlink(missing_ok=True)

    def assertIsRecorded(self, stack):
        shown = self.checked(self.deja("show", self.trace_path(), "--rank", "0", "--kind", "enter", "--stacks")).stdout
        self.assertIn("enter c10d_allreduce", shown)
        self.assertIn("op=sum", shown)
        self.assertRegex(shown, stack)

    def test_a_plug_in_with_stores_and_threads_of_its_own(self):
        """The program uses a method that this backend alone has, too."""
        run = self.assertRecordsAndReplays(3, BACKEND="store", LIMIT="1")
        self.assertIn("rank 0 limit 17", run.stdout)
        self.assertIsRecorded(r"own_backend\.py:\d+ in use")
        comms = self.info_json()["ranks"][0]["comms"]
        self.assertEqual([(c["rank"], c["nranks"]) for c in comms], [(0, 3), (0, 2)])

    def test_a_plug_in_with_a_gloo_of_its_own(self):
        """What that does inside an operation is not recorded for itself."""
        self.assertRecordsAndReplays(2, BACKEND="gloo", EXTENDED="1")
        comms = self.info_json()["ranks"][0]["comms"]
        self.assertEqual([(c["rank"], c["nranks"]) for c in comms], [(0, 2), (0, 2)])

    @unittest.skipUnless(HAS_DEVICES, "groups with several backends are newer than this torch")
    def test_a_plug_in_beside_another_backend(self):
        self.assertRecordsAndReplays(2, BACKEND="store", CONFIG="cpu:own,cuda:gloo")

    def test_mpi(self):
        """The ranks are known to the launcher alone; a replay has none."""
        ranks = {"BACKEND": "mpi", "MPI_FILE": str(self.dir / "met")}
        self.assertRecordsAndReplays(3, **ranks)
        self.assertEqual(self.rank_folders(), ["rank-00000", "rank-00001", "rank-00002"])

    @unittest.skipUnless(shutil.which("mpirun") and ctypes.util.find_library("mpi"), "no Open MPI")
    def test_mpi_by_its_launcher(self):
        """The backend initialises MPI for itself, and ends it when the interpreter exits: that is none of the
        program's."""
        env = {"BACKEND": "mpi", "MPI_FILE": str(self.dir / "met"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        run = self.checked(self.deja("record", "--out", self.trace_path(), "--", "mpirun", "--oversubscribe", "-n", "2",
                                     PYTHON, APPS / "own_backend.py", env=env, timeout=300))
        self.lose_what_the_job_left()
        self.assertRanksReplay(run, 2)

    def test_ucc(self):
        self.assertRecordsAndReplays(2, BACKEND="ucc")

    def test_an_unknown_operation(self):
        """It is made, and said once by each rank, at the end of the recording, and by a replay, which ends there."""
        run = self.record_job("own_backend", 2, BACKEND="store", SHIFT="1")
        self.assertIn("rank 1 shifted [2.0, 2.0]", run.stdout)
        what = "shift of the process group's backend own: Deja does not know this operation"
        self.assertEqual(run.stderr.count(f"deja: not recorded: {what}"), 2)
        self.assertIn(f"deja: not recorded: ranks 0, 1: {what}", run.stderr)
        self.assertIn(f"not recorded: {what}", self.checked(self.deja("info", self.trace_path())).stdout)
        replayed = self.replay(1)
        self.assertNotEqual(replayed.code, 0)
        self.assertIn(f"rank 1: {what}", replayed.stdout)

    @unittest.skipUnless(HAS_DEVICES, "backends have no devices in this torch")
    def test_a_backend_that_is_not_for_the_cpu(self):
        script = self.dir / "fake.py"
        script.write_text("import torch.distributed as dist\n"
                          "class Fake(dist.ProcessGroup):\n"
                          "    def __init__(self, store, rank, size, timeout):\n"
                          "        super().__init__(rank, size)\n"
                          "dist.Backend.register_backend('own', Fake, devices=['meta'])\n"
                          "dist.init_process_group('own')\n"
                          "print(dist.get_world_size(), 'ranks', type(dist.group.WORLD).__name__)\n")
        self.assertEqual(self.checked(self.launch(PYTHON, [script], n=1)).stdout, "1 ranks Fake\n")
        run = self.checked(self.record(PYTHON, [script], n=1))
        self.assertEqual(run.stdout, "1 ranks Fake\n")
        self.assertIn("deja: operations of the backend own are not recorded: it is for meta", run.stderr)


if __name__ == "__main__":
    harness.main()
