"""Checkpoints of PyTorch's optimizers that `deja pack --predict` works out from the one before and the recorded gradients."""
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from torch_jobs import APPS, PYTHON, VERSION, TorchTest, of_rank  # noqa: E402
import harness  # noqa: E402

PACKAGE = {"PYTHONPATH": harness.ROOT / "python"}
CHECKPOINTS = 6  # of a run, at steps 4 to 24; the first one is whole
TENSORS = 8  # of the model
MOSTLY = 0.99  # torch's wheels take square roots that are not always the nearest number


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchPredictions(TorchTest):
    def packed(self, *options):
        """What was predicted of rank 0's state, which all ranks have, and of how many bytes the bundle is."""
        bundle = self.dir / f"packed{len(options)}.deja.zip"
        bundle.unlink(missing_ok=True)
        size = self.checked(self.deja("pack", self.trace_path(), "--out", bundle, "--json", *options)).json()["bytes"]
        self.assertTrue(self.checked(self.deja("verify", bundle, "--json")).json()["sound"])
        return bundle, size, self.info_json(bundle.name)["ranks"][0].get("predicted", {})

    def record_optimizer(self, *job, n=2):
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        return self.checked(self.record(PYTHON, [APPS / "optimizers.py", *job], n=n, env=PACKAGE, timeout=300))

    def assertPredicts(self, parts, *job, least_exact=1.0, most_kept=1 / 3, n=2):
        """Records, packs, and replays all ranks from the last checkpoint, which follows from all others."""
        run = self.record_optimizer(*job, n=n)
        _, whole, none = self.packed()
        self.assertEqual(none, {})
        bundle, size, predicted = self.packed("--predict")
        self.assertNotEqual(predicted, {}, "nothing was predicted")
        self.assertLessEqual(predicted["payloads"], (CHECKPOINTS - 1) * parts * TENSORS)
        self.assertGreater(predicted["payload_bytes"], 0.9 * (CHECKPOINTS - 1) * parts * self.parameter_bytes())
        self.assertGreaterEqual(predicted["exact"] / predicted["elements"], least_exact, predicted)
        self.assertLess(predicted["stored_bytes"], predicted["payload_bytes"] * most_kept)
        self.assertLess(size, whole)
        self.assertReplaysFromTheEnd(run, bundle, n)
        return predicted

    def parameter_bytes(self):
        return 4 * (61 * 203 + 203 + 203 * 128 + 128 + 2 * 128 + 128 * 10 + 10)

    def assertReplaysFromTheEnd(self, run, bundle, n=2):
        for rank in range(n):
            late = self.checked(self.deja("replay", bundle, "--rank", rank, "--from-step", 24, env={"MASTER_PORT": "1"}))
            self.assertIn("from the checkpoint at step 24\n", late.stderr, f"\n{late}")
            self.assertIn("all equal", late.stdout, f"\n{late}")
            self.assertEqual(of_rank(rank, late.stdout)[-2:], of_rank(rank, run.stdout)[-2:])

    def test_adamw(self):
        self.assertPredicts(3, "adamw", least_exact=MOSTLY)
        updates = self.show_json("--rank", "1", "--kind", "update")
        # Steps 2 to 24: the first ones are before the first step that a replay can start at.
        self.assertEqual(len(updates), 23 * TENSORS)
        self.assertEqual({update["optimizer"] for update in updates}, {"AdamW"})
        self.assertIn("what the optimizer should have made",
                      self.checked(self.deja("info", self.dir / "packed1.deja.zip")).stdout)

    def test_adamw_of_all_kinds(self):
        kinds = [["foreach"], ["views"], ["accumulate"], ["clip"]]
        if VERSION >= (2, 4):
            kinds.append(["fused"])
        for manner in kinds:
            with self.subTest(manner=manner):
                self.assertPredicts(3, "adamw", *manner, least_exact=MOSTLY)

    def test_adam_with_decay(self):
        self.assertPredicts(3, "adam", least_exact=MOSTLY)

    def test_sgd(self):
        for kind, parts in (("sgd", 1), ("momentum", 2), ("nesterov", 2)):
            with self.subTest(kind=kind):
                self.assertPredicts(parts, kind)

    def test_the_program_sums_its_gradients_itself(self):
        self.assertPredicts(2, "momentum", "own")
        self.assertPredicts(2, "momentum", "own", "mean")
        self.assertPredicts(3, "adamw", "own", "mean", "clip", least_exact=MOSTLY)

    def test_three_ranks(self):
        """DDP divides before it sums."""
        self.assertPredicts(2, "momentum", n=3)

    def assertKeptWhole(self, *job):
        run = self.record_optimizer(*job)
        self.assertEqual(self.show_json("--rank", "0", "--kind", "update"), [])
        bundle, _, predicted = self.packed("--predict")
        self.assertEqual(predicted, {})
        self.assertReplaysFromTheEnd(run, bundle)

    def test_other_optimizers(self):
        self.assertKeptWhole("rmsprop")
        self.assertKeptWhole("amsgrad")

    def test_gradients_that_the_program_changes(self):
        """Clipped by value: nobody knows. The checkpoints are as they were all the same."""
        self.assertPredicts(2, "momentum", "bounded", least_exact=0.5, most_kept=0.9)

    def test_the_program_computes_the_same(self):
        plain = self.checked(self.launch(PYTHON, [APPS / "optimizers.py", "adamw", "clip"], n=2, env=PACKAGE))
        recorded = self.record_optimizer("adamw", "clip")
        for rank in range(2):
            self.assertEqual(of_rank(rank, plain.stdout), of_rank(rank, recorded.stdout))


if __name__ == "__main__":
    harness.main()
