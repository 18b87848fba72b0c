#!/usr/bin/env python3
"""`deja pack` with less than everything: what replays, what is said of the rest."""
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
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
        run = self.deja("pack", self.trace_path(), "-o", self.bundle, "--json", *options)
        if code == harness.EXIT_OK and "it cannot be replayed" in run.stdout:  # the exit status says so, too
            code = harness.EXIT_DATA_LOSS
        self.checked(run, code)
        if not keep:
            shutil.rmtree(self.trace_path())
        return run.json() if code in (harness.EXIT_OK, harness.EXIT_DATA_LOSS) else run

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
        packed = self.pack("--steps", "20-", code=harness.EXIT_DATA_LOSS)
        self.assertFalse(packed["replays"])
        self.assertEqual(len(packed["left_out"]), RANKS)
        self.assertTrue(self.verify()["sound"])
        self.assertIn("it cannot be replayed: these steps hold no checkpoint", packed["start"])
        self.assertIn("pack from the first step on, as there is no checkpoint before", packed["start"])
        run = self.checked(self.replay_bundle(1), harness.EXIT_FAILURE)
        self.assertIn(f"the data that it received in step 0 is not in {self.bundle} (those outside of steps 20 and later), and "
                      "it holds no checkpoint; pack the trace again", run.stderr)
        self.assertEqual(run.stdout, "")

    def test_a_replay_names_the_bundle_where_its_payloads_end(self):
        self.assertNotIn("start", self.pack("--steps", "-20"))
        run = self.checked(self.replay_bundle(1), harness.EXIT_FAILURE)
        self.assertRegex(run.stdout + run.stderr, r"AllReduce #\d+ of comm 0 .*left out when the trace was packed .left out of "
                                                  rf"{re.escape(str(self.bundle))}/rank-00001: those outside of steps 0 to 20")
        self.assertNotRegex(run.stdout + run.stderr, r"/deja-\w{6}/")

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


class OfSomeSteps(harness.DejaTest):
    def setUp(self):
        self.checked(self.record("replay_checkpoints", ["--tell", "--steps", 40], n=2, options=["--checkpoint-every", 10]))
        self.bundle = self.dir / "small.deja.zip"

    def pack(self, *options):
        """What is said of the bundle; the exit status tells whether it can be replayed at all."""
        self.bundle.unlink(missing_ok=True)
        run = self.deja("pack", self.trace_path(), "-o", self.bundle, *options)
        self.checked(run, harness.EXIT_DATA_LOSS if "cannot be replayed" in run.stdout else harness.EXIT_OK)
        return run.stdout

    def replay(self, *options, rank=1, code=harness.EXIT_OK):
        return self.checked(self.deja("replay", self.bundle, "--rank", rank, *options), code)

    def test_without_a_checkpoint(self):
        self.assertIn("it cannot be replayed: these steps hold no checkpoint, and data from before them is left out; pack the "
                      "checkpoint before, too: --steps 20-29\n", self.pack("--steps", "22-29"))
        for options in ([], ["--from-step", 25], ["--until-step", 25]):
            run = self.replay(*options, code=harness.EXIT_FAILURE)
            self.assertIn("the data that it received in step 0 is not in", run.stderr)
            self.assertIn("it holds no checkpoint; pack the trace again with the checkpoint before these steps", run.stderr)
            self.assertEqual(run.stdout, "")
        self.replay("--until-step", 0)
        self.assertIn("pack from the first step on, as there is no checkpoint before: --steps -9\n", self.pack("--steps", "3-9"))
        self.assertIn("pack from the first step on, as there is no checkpoint before: without --steps\n", self.pack("--steps", "3-"))

    def test_that_begin_with_a_checkpoint(self):
        self.assertIn("replays of it start at the checkpoint of step 20: --from-step 20\n", self.pack("--steps", "20-35"))
        self.assertIn("; start at one of its checkpoints (steps 20, 30): --from-step 30\n",
                      self.replay(code=harness.EXIT_FAILURE).stderr)
        self.assertIn("ended where it was asked to: step 35 begins", self.replay("--from-step", 20, "--until-step", 35).stdout)
        self.assertIn("from the checkpoint at step 30\n", self.replay("--until-step", 33).stderr)

    def test_with_one_later(self):
        self.assertIn("replays of it start at the checkpoint of step 20: --from-step 20; for the steps before pack the checkpoint before, too: "
                      "--steps 10-25\n", self.pack("--steps", "15-25"))

    def test_from_the_first_step_on(self):
        for steps in ("0-25", "-25"):
            self.assertNotIn("replay", self.pack("--steps", steps))
            self.replay("--until-step", 9)

    def test_a_checkpoint_of_one_rank_is_enough_for_it(self):
        self.pack("--ranks", 1, "--steps", "20-")
        self.replay("--from-step", 20)
        self.assertIn("the data that it received in step 0 is not in", self.replay(rank=0, code=harness.EXIT_FAILURE).stderr)

    def test_as_much_as_fits(self):
        everything = self.checked(self.deja("pack", self.trace_path(), "-o", self.dir / "all.zip", "--zstd-level", 3, "--json")).json()["bytes"]
        least = self.checked(self.deja("pack", self.trace_path(), "-o", self.dir / "least.zip", "--level", "digest", "--json")).json()["bytes"]
        said = self.pack("--max-size", least + (everything - least) * 4 // 10)
        self.assertRegex(said, r"replays of rank 0 start at one of its checkpoints .steps? 30|it cannot be replayed: what the ranks were")


class Predicted(harness.DejaTest):
    """Checkpoints of the digits example, which says what its optimizer does."""

    def record_digits(self, mode, n=4):
        recorded = self.checked(self.record("digits_train", [f"--mode={mode}", "--steps=60", "--batch=8"], n=n,
                                            options=["--checkpoint-every", 5]))
        return dict(re.findall(r"^rank (\d+) weights ([0-9a-f]{16})$", recorded.stdout, re.MULTILINE))

    def pack(self, *options):
        bundle = self.dir / "packed.deja.zip"
        bundle.unlink(missing_ok=True)
        size = self.checked(self.deja("pack", self.trace_path(), "--out", bundle, "--json", *options)).json()["bytes"]
        report = self.checked(self.deja("verify", bundle, "--json")).json()
        self.assertTrue(report["sound"], report)
        return bundle, size, [rank.get("predicted", {}) for rank in self.info_json(bundle.name)["ranks"]]

    def assertReplays(self, bundle, weights):
        for rank, step in ((0, 59), (1, 32), (3, 10)):
            run = self.checked(self.deja("replay", bundle, "--rank", rank, "--from-step", step))
            self.assertIn(f"rank {rank} weights {weights[str(rank)]}", run.stdout)
            self.assertIn(f"from the checkpoint at step {step // 5 * 5}\n", run.stderr)

    def test_adam_on_reduced_gradients_is_predicted(self):
        weights = self.record_digits("ddp")
        _, whole, none = self.pack("--zstd-level", 3)
        self.assertEqual(none, [{}] * 4)
        bundle, size, predicted = self.pack("--predict")
        # Rank 0 keeps what all have. Eleven checkpoints, of which the first is whole, of three tensors each.
        self.assertEqual(predicted[0]["payloads"], 30, predicted)
        self.assertEqual(predicted[0]["exact"], predicted[0]["elements"])
        self.assertLess(predicted[0]["stored_bytes"], predicted[0]["payload_bytes"] / 100)
        self.assertLess(size, whole - predicted[0]["payload_bytes"] / 2)
        self.assertReplays(bundle, weights)
        self.assertIn("all its elements are what the optimizer should have made",
                      self.checked(self.deja("info", bundle)).stdout)
        updates = self.show_json("--rank", "2", "--kind", "update")
        self.assertEqual([event["update"] for event in updates], list(range(1, 61)))
        self.assertEqual({event["optimizer"] for event in updates}, {"Adam"})

    def test_each_rank_has_moments_of_its_own(self):
        """The weights of all are results of a collective, which are kept anyway."""
        weights = self.record_digits("sharded")
        bundle, _, predicted = self.pack("--predict")
        for one in predicted:
            self.assertEqual(one["payloads"], 20, predicted)
            self.assertEqual(one["exact"], one["elements"])
        self.assertReplays(bundle, weights)

    def test_sums_that_no_collective_made(self):
        weights = self.record_digits("pipeline")
        bundle, _, predicted = self.pack("--predict")
        self.assertEqual(predicted, [{}] * 4)
        self.assertReplays(bundle, weights)

    def test_optimizers_that_compute_in_other_orders(self):
        """As PyTorch does on processors: momentum with decay, AdamW with fused operations, means of sums."""
        for kind, parts in (("sgd", 1), ("momentum", 2), ("nesterov", 2), ("adam", 3), ("adamw", 3)):
            with self.subTest(kind=kind):
                trace = f"{kind}.deja"
                recorded = self.checked(self.record("replay_optimizers", [kind], n=2, trace=trace,
                                                    options=["--checkpoint-every", 4]))
                bundle = self.dir / f"{kind}.deja.zip"
                self.checked(self.deja("pack", self.trace_path(trace), "--out", bundle, "--predict"))
                self.assertTrue(self.checked(self.deja("verify", bundle, "--json")).json()["sound"])
                predicted = self.info_json(bundle.name)["ranks"][0]["predicted"]
                # Checkpoints at steps 4 to 20, of which the first is whole.
                self.assertEqual(predicted["payloads"], 4 * parts)
                self.assertEqual(predicted["exact"], predicted["elements"])
                run = self.checked(self.deja("replay", bundle, "--rank", 1, "--from-step", 23))
                self.assertIn("from the checkpoint at step 20\n", run.stderr)
                weights = re.search("rank 1 weights [0-9a-f]{16}", recorded.stdout).group()
                self.assertIn(weights, run.stdout)

    def test_an_optimizer_that_does_something_else(self):
        """One gradient in a hundred is clipped: `deja info` says how much is not what was said, and nothing is lost."""
        recorded = self.checked(self.record("replay_optimizers", ["adamw", "--clip"], n=2,
                                            options=["--checkpoint-every", 4]))
        bundle, _, predicted = self.pack("--predict")
        share = predicted[0]["exact"] / predicted[0]["elements"]
        self.assertGreater(share, 0.98)
        self.assertLess(share, 0.991)
        self.assertRegex(self.checked(self.deja("info", bundle)).stdout,
                         r"99\.0\d+ % of its elements are exactly what the optimizer should have made")
        run = self.checked(self.deja("replay", bundle, "--rank", 1, "--from-step", 23))
        self.assertIn(re.search("rank 1 weights [0-9a-f]{16}", recorded.stdout).group(), run.stdout)

    def test_not_with_a_limit(self):
        self.record_digits("ddp", n=2)
        run = self.checked(self.deja("pack", self.trace_path(), "--predict", "--max-size", "1M"), harness.EXIT_USAGE)
        self.assertIn("--predict: it needs the steps before each checkpoint", run.stderr)


if __name__ == "__main__":
    harness.main()
