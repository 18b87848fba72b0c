"""Replays of torch.distributed's jobs from a checkpoint: losses and weights are those of a replay from the start, bit
for bit."""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import APPS, PYTHON, VERSION, TorchTest, of_rank  # noqa: E402

PACKAGE = {"PYTHONPATH": harness.ROOT / "python"}


def step_of(line):
    found = re.search(r" step (\d+) ", line)
    return int(found.group(1)) if found else None


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchCheckpoints(TorchTest):
    def assertReplaysLate(self, *starts, n=2, **env):
        run = self.record_job("checkpoints", n, **env)
        for rank in range(n):
            for start in starts:
                late = self.from_step(rank, start + 1, start)
                lines = of_rank(rank, run.stdout)
                # What was printed before the first step comes again, what lies between it and the checkpoint does not.
                goes_on = next(at for at, line in enumerate(lines) if step_of(line) == start)
                printed = of_rank(rank, late.stdout)
                self.assertEqual(printed[-len(lines[goes_on:]):], lines[goes_on:], f"\n{late}")
                self.assertLess(len(printed), len(lines))
        return run

    def from_step(self, rank, step, starts):
        late = self.checked(self.replay(rank, options=["--from-step", step], env={"MASTER_PORT": "1"}))
        self.assertIn(f"from the checkpoint at step {starts}\n", late.stderr, f"\n{late}")
        self.assertIn("all equal", late.stdout, f"\n{late}")
        return late

    def test_data_parallel(self):
        """In the pass over the data where a replay has its first step, and in later ones."""
        run = self.assertReplaysLate(4, 16)
        self.assertRanksReplay(run, 2)
        checkpoint = self.show_json("--rank", "0", "--kind", "checkpoint")[0]
        self.assertEqual((checkpoint["step"], checkpoint["missing"]), (4, 0), checkpoint)

    def test_watched_objects_do_not_outlive_the_program(self):
        """A model can hold a process group, whose threads would need the interpreter when it is not there any more."""
        plain = self.checked(self.command([PYTHON, APPS / "standalone" / "watched_model.py"], env=PACKAGE))
        self.assertEqual(plain.stdout, "the model goes\nthe end\n")
        recorded = self.checked(self.record_single(PYTHON, APPS / "standalone" / "watched_model.py"))
        self.assertEqual(recorded.stdout, plain.stdout)

    def test_gradient_accumulation_of_a_distributed_sampler(self):
        self.assertReplaysLate(8, MODE="accumulate+sampler")

    @unittest.skipUnless(VERSION and VERSION >= (2, 4), "FSDP on CPUs is newer than this torch")
    def test_fully_sharded(self):
        self.assertReplaysLate(8, MODE="fsdp1")

    @unittest.skipUnless(VERSION and VERSION >= (2, 6), "fully_shard is newer than this torch")
    def test_fully_shard(self):
        self.assertReplaysLate(8, MODE="fsdp2")

    def test_workers_of_the_loader(self):
        self.assertReplaysLate(4, MODE="workers")
        in_a_later_pass = self.replay(0, options=["--from-step", "9"], env={"MASTER_PORT": "1"})
        self.assertEqual(in_a_later_pass.code, harness.EXIT_FAILURE, f"\n{in_a_later_pass}")
        self.assertIn("was made after the first step and is still at work", in_a_later_pass.stdout)

    def test_a_sharded_optimizer_with_workers_that_stay(self):
        self.assertReplaysLate(4, MODE="zero+persistent")

    def test_without_deja(self):
        env = {"JOB_SEED": "5", **PACKAGE}
        plain = self.checked(self.launch(PYTHON, [APPS / "checkpoints.py"], n=2, env=env))
        recorded = self.record_job("checkpoints", 2, JOB_SEED="5")
        for rank in range(2):
            self.assertEqual(of_rank(rank, plain.stdout), of_rank(rank, recorded.stdout))


if __name__ == "__main__":
    harness.main()
