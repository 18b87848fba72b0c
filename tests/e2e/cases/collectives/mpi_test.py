"""Programs that are started by mpirun, recorded there, and replayed rank by rank without it."""
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

REPLAYS = int(os.environ.get("DEJA_REPLAYS", "1"))


def app(name):
    return str(harness.BUILD / "tests" / "mpi" / f"mpi_{name}")


def no_network():
    """A command prefix that takes the network away, where that is allowed."""
    prefix = ["unshare", "-n"]
    works = shutil.which("unshare") and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
    return prefix if works else []


@unittest.skipUnless(shutil.which("mpirun") and Path(app("bootstrap")).is_file(),
                     "needs mpirun and mpi.h")
class MpiTest(harness.DejaTest):
    LAUNCHER = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--output-filename", "{dir}/out"]

    def launcher(self):
        return [part.replace("{dir}", str(self.dir)) for part in self.LAUNCHER]

    def printed_by(self, rank):
        """The lines of one rank. In what the launcher passes on, those of several may be mixed."""
        files = [*self.dir.glob(f"out/*/rank.*{rank}/stdout"), *self.dir.glob(f"out.{rank}")]
        self.assertEqual(len(files), 1, files)
        return [x for x in files[0].read_text().splitlines() if x.startswith(f"rank {rank} of")]

    def mpirun(self, n, *command):
        return self.command([*self.launcher(), "-n", n, *command],
                            env={"LD_LIBRARY_PATH": harness.BUILD / "lib" / "nccl", "OMPI_MCA_plm_rsh_agent": "sh"})

    def record_mpi(self, program, *args, n=4, level="full", trace="run.deja"):
        program = program if os.sep in program else app(program)
        return self.checked(self.mpirun(n, harness.DEJA, "record", "--level", level, "--out", self.trace_path(trace),
                                        "--", program, *args))

    def environment(self, env):
        full = super().environment(env)
        if env is None:  # a replay: nothing of a launcher's
            full = {k: v for k, v in full.items() if not k.startswith(("OMPI_", "PMIX_", "PMI_"))}
        return full

    def replay_alone(self, rank, *options, trace="run.deja"):
        """Without mpirun, without its environment, without a network."""
        return self.command([*no_network(), harness.DEJA, "replay", self.trace_path(trace), "--rank", rank, *options])

    def check_replays(self, n=4):
        for rank in range(n):
            recorded = self.printed_by(rank)
            self.assertTrue(recorded)
            for _ in range(REPLAYS):
                replay = self.checked(self.replay_alone(rank))
                self.assertEqual([x for x in replay.stdout.splitlines() if x.startswith(f"rank {rank} of")], recorded)
                self.assertIn(f"rank {rank}: exit 0, the same as recorded", replay.stdout)


class Bootstrap(MpiTest):
    def test_each_rank_replays_alone(self):
        self.checked(self.mpirun(4, app("bootstrap")))
        plain = self.printed_by(0)
        run = self.record_mpi("bootstrap")
        self.assertNotEqual(self.printed_by(0), plain)  # nothing is seeded
        self.assertEqual(run.stderr.count("deja: recorded 4 ranks"), 1, run.stderr)
        self.assertVerifies()
        self.check_replays()

    def test_results_are_kept_at_any_level(self):
        # They are small, and without them no rank comes as far as NCCL.
        self.record_mpi("bootstrap", n=2, level="order")
        results = [e for e in self.show_json("--rank", "1", "--kind", "results") if "enter" in e]
        self.assertGreaterEqual(len(results), 4)
        for event in results:
            self.assertTrue(event["outputs"][0]["kept"], event)

    def test_shows_calls_and_handles(self):
        self.record_mpi("bootstrap", n=2)
        shown = self.checked(self.deja("show", self.trace_path(), "--rank", 0)).stdout
        self.assertRegex(shown, r"enter MPI_Bcast count=128 datatype=MPI_BYTE root=0 comm=MPI_COMM_WORLD in=")
        self.assertRegex(shown, r"enter MPI_Allreduce count=1 datatype=MPI_DOUBLE op=MPI_SUM")
        self.assertRegex(shown, r"results of call \d+ out=float64\[1\]")
        events = self.show_json("--rank", "0")
        split = next(e for e in events if e.get("call") == "MPI_Comm_split")
        self.assertIn("color", split["args"])
        # What MPI does inside itself is not the program's: no entropy but the id's and the seeds'.
        inputs = [e["call"] for e in events if e.get("kind") == "input"]
        self.assertLessEqual(len([i for i in inputs if not i.startswith("MPI_")]), 8, inputs)

    def test_other_bytes_are_a_divergence(self):
        self.record_mpi("bootstrap")
        replay = self.replay_alone(2, "--", app("bootstrap"), "--other")
        self.assertEqual(replay.code, harness.EXIT_DIVERGED, str(replay))
        self.assertIn("MPI_Allreduce: input sendbuf differs from the recording at element 0 of 1 (float64)",
                      replay.stdout + replay.stderr)
        same = self.replay_alone(1, "--", app("bootstrap"), "--other")
        self.assertEqual(same.code, 0, str(same))

    def test_abort(self):
        run = self.mpirun(2, harness.DEJA, "record", "--out", self.trace_path(), "--", app("bootstrap"),
                          "--abort=1")
        self.assertEqual(run.code, 3, str(run))
        replay = self.replay_alone(1)
        self.checked(replay)
        self.assertIn("rank 1: exit 3, the same as recorded", replay.stdout)

    def test_inside_one_deja(self):
        run = self.deja("record", "--out", self.trace_path(), "--", *self.launcher(), "-n", 2, app("bootstrap"),
                        env={"LD_LIBRARY_PATH": harness.BUILD / "lib" / "nccl", "OMPI_MCA_plm_rsh_agent": "sh"})
        self.checked(run)
        self.check_replays(n=2)


class Calls(MpiTest):
    def test_most_of_mpi(self):
        self.checked(self.mpirun(4, app("calls")))
        run = self.record_mpi("calls")
        self.assertNotIn("WRONG", run.stdout)
        self.assertEqual(len(self.printed_by(2)), 10)
        self.assertVerifies()
        self.check_replays()

    def test_threads(self):
        self.record_mpi("calls", "threads", n=3)
        self.check_replays(n=3)

    def test_another_order_of_calls(self):
        self.record_mpi("calls", "two", "persistent", n=2)
        replay = self.replay_alone(0, "--", app("calls"), "persistent", "two")
        self.checked(replay)  # themes have an order of their own
        replay = self.replay_alone(0, "--", app("calls"), "collectives")
        self.assertEqual(replay.code, harness.EXIT_DIVERGED, str(replay))
        self.assertIn("MPI_Allgather: the recorded run called MPI_Sendrecv here", replay.stdout)

    def test_an_unknown_answer_is_refused(self):
        for theme, call in (("file", "MPI_File_open"), ("window", "MPI_Win_create"), ("fortran", "MPI_Comm_c2f")):
            with self.subTest(theme):
                self.record_mpi("calls", theme, n=2, trace=f"{theme}.deja")
                replay = self.replay_alone(1, trace=f"{theme}.deja")
                self.assertEqual(replay.code, harness.EXIT_FAILURE, str(replay))
                self.assertIn(f"{call} cannot be served", replay.stdout + replay.stderr)
        shown = self.checked(self.deja("show", self.trace_path("file.deja"), "--rank", 0)).stdout
        self.assertIn("enter MPI_File_open", shown)

    def test_a_rank_that_dies_in_a_call(self):
        run = self.mpirun(2, harness.DEJA, "record", "--out", self.trace_path(), "--", "timeout", "-s", "KILL", "3",
                          app("calls"), "hang")
        self.assertNotEqual(run.code, 0)
        replay = self.replay_alone(1)
        self.checked(replay)
        self.assertIn("in MPI_Recv (entered, never left)", replay.stdout)

    def test_a_program_that_opens_mpi_by_itself(self):
        self.record_mpi("opened", n=3)
        self.check_replays(n=3)


@unittest.skipUnless(shutil.which("mpiexec.mpich") and Path(app("calls_mpich")).is_file(), "needs MPICH")
class Mpich(MpiTest):
    LAUNCHER = ["mpiexec.mpich", "-outfile-pattern", "{dir}/out.%r"]

    def test_most_of_mpi(self):
        self.record_mpi("calls_mpich", n=3)
        self.assertEqual(len(self.printed_by(0)), 10)
        self.check_replays(n=3)
        shown = self.checked(self.deja("show", self.trace_path(), "--rank", 0)).stdout
        self.assertRegex(shown, "enter MPI_Allgather sendcount=8 sendtype=0x4c000405 .*comm=0x44000000 ")


class RealPrograms(MpiTest):
    """Programs of the distribution's, none of them this project's."""

    @unittest.skipUnless(shutil.which("NPopenmpi"), "needs netpipe-openmpi")
    def test_netpipe(self):
        run = self.record_mpi(shutil.which("NPopenmpi"), "-u", "2000", "-n", "5", "-o", "/dev/null", n=2)
        for rank in range(2):
            self.assertIn(f"rank {rank}: exit 0, the same as recorded", self.checked(self.replay_alone(rank)).stdout)
        # Its measurements are MPI's clock, so a replay prints the recorded ones.
        err = next(self.dir.glob("out/*/rank.*0/stderr")).read_text()
        table = [x for x in err.splitlines() if "-->" in x]
        replay = self.replay_alone(0)
        self.assertGreater(len(table), 10, str(run))
        self.assertEqual([x for x in (replay.stdout + replay.stderr).splitlines() if "-->" in x], table)

    @unittest.skipUnless(subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True).returncode == 0,
                         "needs python3-mpi4py")
    def test_mpi4py(self):
        script = self.dir / "job.py"
        script.write_text("""
import random
from mpi4py import MPI
c = MPI.COMM_WORLD
r, n = c.rank, c.size
gathered = c.gather({"rank": r, "value": random.random()}, root=0)
given = c.bcast(random.random() if r == 0 else None, root=0)
total = c.allreduce(random.randrange(1000))
other = c.sendrecv([r, random.random()], dest=(r + 1) % n, source=(r - 1) % n)
all_to_all = c.alltoall([random.random() for _ in range(n)])
print(f"rank {r} of {n}: {gathered} {given} {total} {other} {all_to_all} {MPI.Get_processor_name()}", flush=True)
""")
        self.record_mpi("/usr/bin/python3", script, n=3)
        self.check_replays(n=3)


if __name__ == "__main__":
    harness.main()
