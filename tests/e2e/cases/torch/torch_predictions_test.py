"""Checkpoints of PyTorch's optimizers that `deja pack --predict` works out from the one before and the recorded
gradients."""
import collections
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
MOSTLY = 0.99
IS_WHEEL = PYTHON != "/usr/bin/python3"  # takes square roots that are not always the nearest number


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchPredictions(TorchTest):
    def packed(self, *options):
        """What was predicted of rank 0's state, which all ranks have, and of how many bytes the bundle is."""
        bundle = self.dir / f"packed{len(options)}.deja.zip"
        bundle.unlink(missing_ok=True)
        size = self.checked(self.deja("pack", self.trace_path(), "--out", bundle, "--json", *options)).json()["bytes"]
        self.assertTrue(self.checked(self.deja("verify", bundle, "--json")).json()["sound"])
        return bundle, size, self.info_json(bundle.name)["ranks"][0].get("predicted", {})

    def record_optimizers(self, *jobs, n=2):
        """Each job is trained beside the others, in the same steps."""
        shutil.rmtree(self.trace_path(), ignore_errors=True)
        return self.checked(self.record(PYTHON, self.program(*jobs), n=n, env=PACKAGE, timeout=300))

    def program(self, *jobs):
        return [APPS / "optimizers.py", *" + ".join(jobs).split()]

    def assertPredicts(self, jobs, least_exact=1.0, most_kept=1 / 3, n=2):
        """Records, packs, and replays all ranks from the last checkpoint, which follows from all others.

        jobs: each with the parts of its state that are predicted for each tensor of the model. least_exact: of each
        job."""
        run = self.record_optimizers(*jobs, n=n)
        _, whole, none = self.packed()
        self.assertEqual(none, {})
        bundle, size, predicted = self.packed("--predict")
        self.assertNotEqual(predicted, {}, "nothing was predicted")
        parts = sum(jobs.values())
        self.assertLessEqual(predicted["payloads"], (CHECKPOINTS - 1) * parts * TENSORS)
        self.assertGreater(predicted["payload_bytes"], 0.9 * (CHECKPOINTS - 1) * parts * self.parameter_bytes())
        # One job below its bound would bring the sum of all below this one.
        all_exact = 1 - (1 - least_exact) * min(jobs.values()) / parts
        self.assertGreaterEqual(predicted["exact"] / predicted["elements"], all_exact, predicted)
        self.assertLess(predicted["stored_bytes"], predicted["payload_bytes"] * most_kept)
        self.assertLess(size, whole)
        self.assertReplaysFromTheEnd(run, bundle, len(jobs), n)
        return run

    def parameter_bytes(self):
        return 4 * (61 * 203 + 203 + 203 * 128 + 128 + 2 * 128 + 128 * 10 + 10)

    def assertReplaysFromTheEnd(self, run, bundle, jobs, n=2):
        """The losses of the last step, and the weights of each job."""
        for rank in range(n):
            late = self.checked(self.deja("replay", bundle, "--rank", rank, "--from-step", 24, env={"MASTER_PORT": "1"}))
            self.assertIn("from the checkpoint at step 24\n", late.stderr, f"\n{late}")
            self.assertIn("all equal", late.stdout, f"\n{late}")
            self.assertEqual(of_rank(rank, late.stdout)[-1 - jobs:], of_rank(rank, run.stdout)[-1 - jobs:])

    def test_adam(self):
        """All that its implementations, DDP and the program do with gradients. The program computes what it does
        without Deja."""
        jobs = dict.fromkeys(["adamw", "adamw foreach", "adamw views", "adamw accumulate", "adamw clip", "adam",
                              "adamw own mean clip", *(["adamw fused"] if VERSION >= (2, 4) else [])], 3)
        # The sum of jobs that are all inexact does not say what each one is.
        for group in [{job: 3} for job in jobs] if IS_WHEEL else [jobs]:
            with self.subTest(jobs=list(group)):
                self.assertPredictsAdam(group)

    def assertPredictsAdam(self, jobs):
        plain = self.checked(self.launch(PYTHON, self.program(*jobs), n=2, env=PACKAGE))
        recorded = self.assertPredicts(jobs, least_exact=MOSTLY)
        for rank in range(2):
            self.assertEqual(of_rank(rank, plain.stdout), of_rank(rank, recorded.stdout))
        counts = collections.Counter(update["optimizer"] for update in self.show_json("--rank", "1", "--kind", "update"))
        # Steps 2 to 24: the first ones are before the first step that a replay can start at.
        kinds = collections.Counter("Adam" if job == "adam" else "AdamW" for job in jobs)
        self.assertEqual(counts, {kind: number * 23 * TENSORS for kind, number in kinds.items()})
        self.assertIn("what the optimizer should have made",
                      self.checked(self.deja("info", self.dir / "packed1.deja.zip")).stdout)

    def test_sgd(self):
        """With own, the program sums its gradients itself."""
        self.assertPredicts({"sgd": 1, "momentum": 2, "nesterov": 2, "momentum own": 2, "momentum own mean": 2})

    def test_three_ranks(self):
        """DDP divides before it sums."""
        self.assertPredicts({"momentum": 2}, n=3)

    def test_other_optimizers_are_kept_whole(self):
        run = self.record_optimizers("rmsprop", "amsgrad")
        self.assertEqual(self.show_json("--rank", "0", "--kind", "update"), [])
        bundle, _, predicted = self.packed("--predict")
        self.assertEqual(predicted, {})
        self.assertReplaysFromTheEnd(run, bundle, 2)

    def test_gradients_that_the_program_changes(self):
        """Clipped by value: not known. The checkpoints are as they were all the same."""
        self.assertPredicts({"momentum bounded": 2}, least_exact=0.5, most_kept=0.9)


if __name__ == "__main__":
    harness.main()
