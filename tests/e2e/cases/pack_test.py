#!/usr/bin/env python3
"""`deja pack` with less than everything: what replays, what is said of the rest."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

RANKS = 3
STEPS = 30


class Smaller(harness.DejaTest):
    def setUp(self):
        self.checked(self.record("replay_trainer", ["--steps", STEPS], n=RANKS))

    def pack(self, *options, code=harness.EXIT_OK, keep=False):
        """Packs and forgets the original. Returns what pack says of it."""
        self.bundle = self.dir / "small.deja.zip"
        self.bundle.unlink(missing_ok=True)
        run = self.checked(self.deja("pack", self.trace_path(), "-o", self.bundle, "--json", *options), code)
        if not keep:
            shutil.rmtree(self.trace_path())
        return run.json() if code == harness.EXIT_OK else run

    def verify(self):
        return self.checked(self.deja("verify", self.bundle, "--json")).json()

    def replay_bundle(self, rank):
        return self.deja("replay", self.bundle, "--rank", rank)

    def test_one_rank_replays_without_the_others(self):
        packed = self.pack("--ranks", 2)
        self.assertEqual({one["rank"] for one in packed["left_out"]}, {0, 1})
        self.assertEqual(packed["bytes"], self.bundle.stat().st_size)
        report = self.verify()
        self.assertTrue(report["sound"])
        self.assertEqual(report["ranks"], RANKS)
        self.assertGreater(report["payloads_left_out"], 0)
        self.checked(self.replay_bundle(2))
        text = self.checked(self.deja("info", self.bundle)).stdout
        self.assertRegex(text, r"left out when packed: \d+ payloads of .* \(all but what rank 2 needed\)")
        info = self.info_json(self.bundle.name)
        self.assertNotIn("left_out", info["ranks"][2])
        self.assertEqual(info["ranks"][0]["left_out"]["payloads"],
                         next(one["payloads"] for one in packed["left_out"] if one["rank"] == 0))

    def test_a_replay_ends_where_the_payloads_end(self):
        packed = self.pack("--steps", "20-")
        self.assertEqual(len(packed["left_out"]), RANKS)
        self.assertTrue(self.verify()["sound"])
        run = self.replay_bundle(1)
        self.assertNotEqual(run.code, harness.EXIT_OK)
        self.assertRegex(run.stdout + run.stderr, r"AllReduce #\d+ of comm 0 .*left out when the trace was packed "
                                                  r".*those outside of steps 20 and later")

    def test_as_much_as_fits(self):
        least = self.pack("--level", "digest", keep=True)["bytes"]
        everything = self.pack("--zstd-level", 3, keep=True)["bytes"]
        limit = (least + everything) // 2
        packed = self.pack("--max-size", limit, keep=True)
        self.assertLessEqual(packed["bytes"], limit)
        self.assertGreater(packed["bytes"], limit * 8 // 10)
        self.assertTrue(self.verify()["sound"])
        refused = self.pack("--max-size", least // 4, code=harness.EXIT_FAILURE, keep=True)
        self.assertIn("--level order", refused.stderr)
        self.assertFalse(self.bundle.exists())

    def test_the_rank_that_failed_comes_first(self):
        shutil.rmtree(self.trace_path())
        self.record("replay_trainer", ["--steps", STEPS, "--fault", "exit", "--fault-step", 20, "--fault-rank", 1],
                    n=RANKS)
        least = self.pack("--level", "digest", keep=True)["bytes"]
        alone = self.pack("--ranks", 1, keep=True)["bytes"]
        packed = self.pack("--max-size", alone + (alone - least) // 50)
        self.assertNotIn(1, {one["rank"] for one in packed["left_out"]})
        self.assertIn(0, {one["rank"] for one in packed["left_out"]})
        run = self.replay_bundle(1)
        self.assertNotIn("left out", run.stdout + run.stderr)

    def test_events_stay_as_they_were(self):
        original = self.deja("show", self.trace_path(), "--rank", 1, "--all").stdout
        self.pack("--ranks", 0, "--steps", "1-2", "--zstd-level", 19)
        self.assertEqual(self.checked(self.deja("show", self.bundle, "--rank", 1, "--all")).stdout, original)

    def test_wrong_options(self):
        for options, code, said in ((["--steps", "5-2"], harness.EXIT_USAGE, "not a range"),
                                    (["--ranks", "one"], harness.EXIT_USAGE, "--ranks one"),
                                    (["--ranks", "9"], harness.EXIT_FAILURE, "rank 9")):
            run = self.pack(*options, code=code, keep=True)
            self.assertIn(said, run.stderr)


if __name__ == "__main__":
    harness.main()
