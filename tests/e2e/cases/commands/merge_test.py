"""deja merge: what two nodes have written without a shared file system is one trace, with one clock."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

PROGRAM = ["stepper", "--steps=6", "--calls=2", "--pause-us=30000"]


class Merge(harness.DejaTest):
    def record_nodes(self, world_size=4, folders=("node0.deja", "node1.deja")):
        """Each `deja record` writes into the folder of its node, as if there were no other."""
        shared = {"LD_LIBRARY_PATH": harness.BUILD / "lib" / "nccl", "NCCL_COMM_ID": f"127.0.0.1:{harness.free_port()}",
                  "WORLD_SIZE": world_size}
        per_node = world_size // len(folders)
        jobs = [self.start([harness.DEJA, "record", "--level", "full", "--out", self.trace_path(folders[rank // per_node]), "--",
                            harness.app(PROGRAM[0]), *PROGRAM[1:]], env={**shared, "RANK": rank, "LOCAL_RANK": rank % per_node})
                for rank in range(world_size)]
        for job in jobs:
            self.checked(self.finish(job))

    def merge(self, *traces, out="run.deja", code=0):
        return self.checked(self.deja("merge", *map(self.trace_path, traces), "--out", self.trace_path(out), "--json"), code)

    def test_two_nodes(self):
        self.record_nodes()
        self.assertEqual(self.rank_folders("node1.deja"), ["rank-00002", "rank-00003"])
        merged = self.merge("node0.deja", "node1.deja").json()
        self.assertEqual((merged["ranks"], merged["world_size"]), (4, 4))
        self.assertEqual([part["ranks"] for part in merged["parts"]], [[0, 1], [2, 3]])
        # One machine has one clock.
        self.assertEqual([host["clock_ahead_ns"] for part in merged["parts"] for host in part["hosts"]], [0, 0])
        self.assertVerifies()
        ranks = self.info_json()["ranks"]
        self.assertEqual([rank["exit_code"] for rank in ranks], [0] * 4)
        for rank in (0, 3):
            self.checked(self.replay(rank, options=["--trust"]))
        self.assertEqual(self.checked(self.deja("check", self.trace_path(), "--json")).json()["findings"], [])
        self.checked(self.deja("pack", self.trace_path(), "--out", self.dir / "run.zip"))
        self.assertVerifies("run.zip")
        # Bundles, in any order, give the same ranks.
        self.checked(self.deja("pack", self.trace_path("node1.deja"), "--out", self.dir / "node1.zip"))
        again = self.merge("node1.zip", "node0.deja", out="again.deja").json()
        self.assertEqual([part["ranks"] for part in again["parts"]], [[2, 3], [0, 1]])
        self.assertVerifies("again.deja")
        self.refusals()

    def refusals(self):
        twice = self.merge("node0.deja", "node0.deja", out="no.deja", code=1)
        self.assertIn("it has rank 0, which", twice.stderr)
        self.record_nodes(folders=("other.deja",))
        shutil.rmtree(self.trace_path("other.deja") / "rank-00000")
        shutil.rmtree(self.trace_path("other.deja") / "rank-00001")
        other = self.merge("node0.deja", "other.deja", out="no.deja", code=1)
        self.assertIn("their ranks have no communicator in common", other.stderr)
        self.record_nodes(world_size=3, folders=("small.deja",))
        shutil.rmtree(self.trace_path("small.deja") / "rank-00000")
        shutil.rmtree(self.trace_path("small.deja") / "rank-00001")
        small = self.merge("node0.deja", "small.deja", out="no.deja", code=1)
        self.assertIn("rank 2 is of a job of 3 ranks", small.stderr)
        there = self.merge("node0.deja", "node1.deja", code=1)
        self.assertIn("run.deja", there.stderr)
        self.assertFalse(self.trace_path("no.deja").exists())
        self.assertEqual(sorted(p.name for p in self.dir.glob("*deja-*")), [])


if __name__ == "__main__":
    harness.main()
