"""One job makes one trace, whoever starts its processes; a second job is refused."""
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Launchers(harness.DejaTest):
    def loopback(self, **more):
        """The variables with which a program finds loopback without `--loopback`."""
        return {"LD_LIBRARY_PATH": harness.BUILD / "lib" / "nccl",
                "NCCL_COMM_ID": f"127.0.0.1:{harness.free_port()}", **more}

    def mpirun(self, n, *command, **kwargs):
        return self.command(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", n, *command],
                            env=self.loopback(OMPI_MCA_plm_rsh_agent="sh"), **kwargs)

    def four_ranks(self, trace="run.deja"):
        self.assertEqual(self.rank_folders(trace), [f"rank-{r:05}" for r in range(4)])
        self.assertVerifies(trace)
        self.assertEqual(len(self.info_json(trace)["ranks"]), 4)

    @unittest.skipUnless(shutil.which("mpirun"), "needs mpirun")
    def test_mpirun_inside(self):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
        run = self.deja("record", "--out", self.trace_path(), "--", *mpirun, harness.app("reduces"),
                        env=self.loopback())
        self.checked(run)
        self.assertEqual(sorted(run.stdout.splitlines())[2][:13], "rank 2 of 4: ")
        self.four_ranks()

    @unittest.skipUnless(shutil.which("mpirun"), "needs mpirun")
    def test_mpirun_outside(self):
        run = self.mpirun(4, harness.DEJA, "record", "--out", self.trace_path(), "--", harness.app("reduces"))
        self.checked(run)
        self.four_ranks()
        self.assertEqual(run.stderr.count("deja: recorded 4 ranks"), 1, run.stderr)
        again = self.mpirun(4, harness.DEJA, "record", "--out", self.trace_path(), "--", harness.app("reduces"))
        self.assertNotEqual(again.code, 0)
        self.four_ranks()

    @unittest.skipUnless(shutil.which("mpirun"), "needs mpirun")
    def test_mpirun_outside_without_a_name(self):
        run = self.checked(self.mpirun(4, harness.DEJA, "record", "--", harness.app("reduces")))
        traces = list(self.dir.glob("*.deja"))
        self.assertEqual(len(traces), 1, run.stderr)
        self.four_ranks(traces[0].name)

    def plain_processes(self, trace="run.deja", **more):
        shared = self.loopback(**more)
        processes = [self.start([harness.DEJA, "record", "--out", self.trace_path(trace), "--",
                                 harness.app("reduces")],
                                env={**shared, "RANK": r, "WORLD_SIZE": 4, "LOCAL_RANK": r})
                     for r in range(4)]
        return [self.finish(p) for p in processes]

    def test_plain_processes(self):
        for run in self.plain_processes():
            self.checked(run)
        self.four_ranks()

    def test_plain_processes_with_a_master_port(self):
        for run in self.plain_processes(MASTER_ADDR="127.0.0.1", MASTER_PORT=harness.free_port()):
            self.checked(run)
        self.four_ranks()

    def test_restarted_ranks_are_further_attempts(self):
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": harness.free_port(), "TORCHELASTIC_RUN_ID": "r1"}
        for run in self.plain_processes(**shared, TORCHELASTIC_RESTART_COUNT=0):
            self.checked(run)
        for run in self.plain_processes(**shared, TORCHELASTIC_RESTART_COUNT=1):
            self.checked(run)
        self.assertEqual(self.rank_folders(), sorted(f"rank-{r:05}{attempt}" for r in range(4)
                                                     for attempt in ("", ".1")))
        self.assertVerifies()
        for run in self.plain_processes(**{**shared, "TORCHELASTIC_RUN_ID": "r2"}):
            self.assertEqual(run.code, harness.EXIT_FAILURE, str(run))

    def test_one_deja_around_a_script_that_starts_the_ranks(self):
        script = ("for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 " + harness.app("reduces") + " & done; wait")
        self.checked(self.deja("record", "--out", self.trace_path(), "--", "bash", "-c", script,
                               env=self.loopback()))
        self.four_ranks()

    def test_slurm_variables(self):
        script = ("for r in 0 1; do SLURM_PROCID=$r SLURM_NTASKS=2 RANK=$r WORLD_SIZE=2 "
                  + harness.app("reduces") + " & done; wait")
        self.checked(self.deja("record", "--out", self.trace_path(), "--", "bash", "-c", script,
                               env=self.loopback()))
        self.assertEqual(len(self.info_json()["ranks"]), 2)

    def test_second_job_is_refused_while_the_first_runs(self):
        first = self.start(self.record_argv("reduces", ["--calls=2", "--say", "--end=hang", "--rank=0"], n=1))
        first.stdout.readline()
        second = self.record("reduces", n=1)
        forced = self.record("reduces", n=1, options=["--force"])
        for run in (second, forced):
            self.assertEqual(run.code, harness.EXIT_FAILURE)
            self.assertIn("another job", run.stderr)
        first.terminate()
        self.assertEqual(self.finish(first).code, 143)
        self.assertVerifies()


if __name__ == "__main__":
    harness.main()
