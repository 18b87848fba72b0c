#!/usr/bin/env python3
"""What the ranks of a machine have in common is kept once: sizes, replays, lost folders, bundles."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

ARGS = ["--calls=6", "--count=400000"]  # of 1.6 MB each
RANKS = 3


class Shared(harness.DejaTest):
    def record_with(self, *options, args=ARGS):
        run = self.record("reduces", args, n=RANKS, options=list(options))
        self.checked(run)
        self.assertEqual([name for name in harness.shm_names() if name.endswith("shared.tail") and
                          self.job() in name], [])
        return run

    def job(self):
        return self.info_json()["job"]

    def payload_bytes(self):
        return sum(rank["payload_bytes"] + rank["partial_payload_bytes"] for rank in self.info_json()["ranks"])

    def assertReplays(self, ranks):
        for rank in ranks:
            run = self.replay(rank)
            self.assertEqual(run.code, 0, f"rank {rank}\n{run}")

    def test_each_rank_replays_what_is_kept_once(self):
        self.record_with("--redundancy", "0")
        alone = self.payload_bytes()
        self.assertReplays([1])
        shutil.rmtree(self.trace_path())
        recorded = self.record_with()
        self.assertSameLines(self.launch("reduces", ARGS, n=RANKS).stdout, recorded.stdout)
        together = self.payload_bytes()
        # A rank that waits too long for another keeps its own: never more than without sharing.
        self.assertLess(together, alone)
        self.assertGreaterEqual(together * RANKS, alone)
        self.assertVerifies()
        self.assertReplays(range(RANKS))

    def test_a_missing_folder(self):
        self.record_with()
        # The one that came first most often: the others need it.
        kept = {rank["rank"]: rank["payload_bytes"] + rank["partial_payload_bytes"]
                for rank in self.info_json()["ranks"]}
        lost = max(kept, key=kept.get)
        shutil.rmtree(Path(self.trace_path()) / f"rank-0000{lost}")
        run = self.deja("verify", self.trace_path())
        self.assertEqual(run.code, harness.EXIT_DATA_LOSS, f"\n{run}")
        self.assertRegex(run.stdout, r"payloads that other ranks of its machine keep for it are not there; "
                                     rf"not in the trace: rank {lost}\b")
        run = self.replay((lost + 1) % RANKS)
        self.assertNotEqual(run.code, 0)
        self.assertIn("deja verify", run.stdout + run.stderr)

    def test_two_copies_outlive_a_folder(self):
        self.record_with("--redundancy", "2", args=["--calls=6", "--count=20000"])
        shutil.rmtree(Path(self.trace_path()) / "rank-00001")
        self.assertVerifies()
        self.assertReplays([0, 2])

    def test_a_bundle(self):
        self.record_with()
        bundle = self.dir / "bundle.deja.zip"
        self.checked(self.deja("pack", self.trace_path(), "--out", bundle))
        shutil.rmtree(self.trace_path())
        run = self.deja("replay", bundle, "--rank", "2")
        self.assertEqual(run.code, 0, f"\n{run}")


if __name__ == "__main__":
    harness.main()
