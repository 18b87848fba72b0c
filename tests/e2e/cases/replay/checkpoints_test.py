#!/usr/bin/env python3
"""Replays that start at a checkpoint: the same results as from the start, bit for bit, or a word about why not."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APP = "replay_checkpoints"


def results(run, what="trail"):
    """What ranks printed at their end, by rank."""
    return {int(rank): text for rank, text in re.findall(rf"^rank (\d+) {what} ([0-9a-f]{{16}})$", run.stdout, re.MULTILINE)}


class Checkpoints(harness.DejaTest):
    def record_app(self, *args, every=10, options=(), n=2, **kwargs):
        return self.record(APP, args, n=n, options=["--checkpoint-every", every, *options], **kwargs)

    def from_step(self, rank, step, options=(), program=()):
        return self.replay(rank, options=["--from-step", step, *options, *(["--", *program] if program else [])])

    def assertStartsAt(self, run, step):
        self.assertIn(f"from the checkpoint at step {step}\n", run.stderr, f"\n{run}")

    def assertSays(self, run, *words):
        self.assertEqual(run.code, harness.EXIT_FAILURE, f"\n{run}")
        for word in words:
            self.assertIn(word, run.stdout, f"\n{run}")


class SameResults(Checkpoints):
    def check_digits(self, mode, options=(), from_step=89, starts=75):
        recorded = self.checked(self.record("digits_train", [f"--mode={mode}", "--steps=100", "--batch=16"],
                                            options=["--checkpoint-every", 25, *options]))
        expected = results(recorded, "weights")
        self.assertEqual(sorted(expected), [0, 1, 2, 3], f"\n{recorded}")
        for rank in range(4):
            run = self.checked(self.from_step(rank, from_step))
            self.assertStartsAt(run, starts)
            self.assertEqual(results(run, "weights"), {rank: expected[rank]}, f"\n{run}")
            self.assertNotIn("diverge", run.stdout)
        return expected

    def test_ddp(self):
        expected = self.check_digits("ddp")
        for rank, step, starts in ((0, 25, 25), (1, 74, 50), (3, 99, 75)):
            run = self.checked(self.from_step(rank, step))
            self.assertStartsAt(run, starts)
            self.assertEqual(results(run, "weights"), {rank: expected[rank]}, f"\n{run}")
        lines = [line for line in run.stdout.splitlines() if line.startswith("step")]
        self.assertEqual(lines, [], "what came before the checkpoint is not printed by rank 3")
        side_by_side = self.checked(self.deja("replay", self.trace_path(), "--all", "--from-step", 80))
        self.assertEqual(results(side_by_side, "weights"), expected)

    def test_late_in_a_long_run(self):
        """Long enough that most batches of events are not read."""
        recorded = self.checked(self.record("digits_train", ["--steps=600", "--batch=16", "--log-every=1000"], n=2,
                                            options=["--checkpoint-every", 100]))
        expected = results(recorded, "weights")
        for rank in range(2):
            run = self.checked(self.from_step(rank, 590))
            self.assertStartsAt(run, 500)
            self.assertEqual(results(run, "weights"), {rank: expected[rank]}, f"\n{run}")

    def test_sharded(self):
        self.check_digits("sharded")

    def test_pipeline(self):
        self.check_digits("pipeline")

    def test_hybrid(self):
        self.check_digits("hybrid")

    def test_in_a_window(self):
        self.check_digits("ddp", options=["--keep-steps", 10])
        checkpoints = self.info_json()["ranks"][0]["checkpoints"]
        self.assertEqual([c["step"] for c in checkpoints], [25, 50, 75])
        self.assertTrue(checkpoints[-1]["complete"], checkpoints)

    def test_inputs_of_several_threads(self):
        """Clocks, entropy on a thread that runs ahead, threads that come and go, the standard library's generator."""
        recorded = self.checked(self.record_app())
        expected = results(recorded)
        for rank in range(2):
            for step, starts in ((10, 10), (19, 10), (29, 20)):
                run = self.checked(self.from_step(rank, step))
                self.assertStartsAt(run, starts)
                self.assertEqual(results(run), {rank: expected[rank]}, f"\n{run}")
            self.assertEqual(results(self.checked(self.replay(rank))), {rank: expected[rank]})

    def test_without_deja_and_without_checkpoints(self):
        plain = self.checked(self.launch(APP, n=2))
        self.assertEqual(sorted(results(plain)), [0, 1])
        self.checked(self.record(APP, n=2))
        self.assertNotIn("checkpoints", self.info_json()["ranks"][0])
        run = self.checked(self.from_step(0, 20))
        self.assertIn("from the start: rank 0 has no complete checkpoint", run.stderr)

    def test_the_program_asks(self):
        expected = results(self.checked(self.record(APP, ["--ask"], n=2)))
        run = self.checked(self.from_step(1, 29))
        self.assertStartsAt(run, 7)
        self.assertEqual(results(run), {1: expected[1]})

    def test_shown(self):
        self.checked(self.record_app())
        info = self.info_json()
        for rank in info["ranks"]:
            self.assertEqual([(c["step"], c["items"], c["complete"]) for c in rank["checkpoints"]],
                             [(10, 4, True), (20, 4, True)])
        self.assertIn("checkpoints: 2 at steps 10, 20, the last with 4 items",
                      self.checked(self.deja("info", self.trace_path())).stdout)
        events = self.show_json("--rank", "0", "--kind", "checkpoint")
        self.assertEqual([e["step"] for e in events], [10, 20], events)
        self.assertEqual({e["missing"] for e in events}, {0})


class Killed(Checkpoints):
    def test_during_a_checkpoint(self):
        recorded = self.record_app("--kill-in-save", "2", "--steps", "1000")
        self.assertNotEqual(recorded.code, 0)
        by_rank = {rank["rank"]: rank for rank in self.info_json()["ranks"]}
        self.assertEqual([c["step"] for c in by_rank[1]["checkpoints"]], [10])
        for rank in range(2):
            run = self.checked(self.from_step(rank, 900))
            self.assertStartsAt(run, 10)


class Damaged(Checkpoints):
    def test_the_next_older_one_is_used(self):
        expected = results(self.checked(self.record_app()))
        steps = [c["step"] for c in self.info_json()["ranks"][0]["checkpoints"]]
        self.damage_checkpoint(steps[-1])
        for options in (["--from-step", 900], ["--from-step", steps[-1]], ["--until-step", steps[-1] + 1]):
            run = self.checked(self.replay(0, options=options))
            self.assertIn(f"the checkpoint at step {steps[-1]} is damaged and is not used: the bytes of 'weights' on rank 0 cannot be read: ",
                          run.stderr, f"\n{run}")
            self.assertStartsAt(run, steps[-2])
            if "--until-step" not in options:
                self.assertEqual(results(run), {0: expected[0]}, f"\n{run}")
        older = self.checked(self.from_step(0, steps[-2]))
        self.assertNotIn("damaged", older.stderr, f"\n{older}")
        for step in steps[:-1]:
            self.damage_checkpoint(step)
        run = self.checked(self.from_step(0, 900))
        self.assertEqual(run.stderr.count("is damaged and is not used"), len(steps), f"\n{run}")
        self.assertIn(f"from the start: there is no whole checkpoint before step {steps[0]}\n", run.stderr, f"\n{run}")
        self.assertEqual(results(run), {0: expected[0]}, f"\n{run}")

    def test_one_can_be_checked_alone(self):
        self.checked(self.record_app())
        steps = [c["step"] for c in self.info_json()["ranks"][0]["checkpoints"]]
        self.damage_checkpoint(steps[-1])
        check = lambda step, *options: self.deja("verify", self.trace_path(), "--checkpoint", step, *options)
        self.assertEqual(self.checked(check(steps[0])).stdout, f"sound: the checkpoint at step {steps[0]}\n")
        run = self.checked(check(steps[-1], "--rank", 0), harness.EXIT_DATA_LOSS)
        self.assertIn(f"NOT SOUND: the checkpoint at step {steps[-1]}: the bytes of 'weights' on rank 0 cannot be read: ", run.stdout)
        self.assertFalse(self.checked(check(steps[-1], "--json"), harness.EXIT_DATA_LOSS).json()["sound"])
        run = self.checked(check(steps[-1] + 1), harness.EXIT_FAILURE)
        self.assertIn(f"there is none that all ranks have whole (the last one before it is at step {steps[-1]})", run.stderr)


class DoesNotFit(Checkpoints):
    def program(self, *args):
        return [harness.app(APP), *args]

    def test_other_state(self):
        self.checked(self.record_app())
        for args, words in (
                (["--rename"], ["the program registers 'weight', which the checkpoint does not have",
                                "the checkpoint has 'weights', which the program has not registered"]),
                (["--reshape"], ["'weights' is float32[30x100], recorded float32[3000]"]),
                (["--retype"], ["'weights' is int32[3000], recorded float32[3000]"]),
                (["--forget"], ["the checkpoint has 'trail', which the program has not registered"]),
                (["--extra"], ["the program registers 'steps', which the checkpoint does not have"]),
                (["--refuse"], ["the program's callback for 'feeder' could not load it"])):
            with self.subTest(args=args):
                run = self.from_step(0, 20, program=self.program(*args))
                self.assertSays(run, "checkpoint of step 20", *words)
                self.assertEqual(results(run), {}, f"\n{run}")

    def test_made_after_the_first_step(self):
        for flag, words in (("--late-thread", "thread 0.5 was made after the first step and is still at work"),
                            ("--late-comm", "communicator 1 was made after the first step and is still used")):
            with self.subTest(flag=flag):
                trace = f"run{flag}.deja"
                self.checked(self.record_app(flag, trace=trace))
                run = self.replay(0, trace=trace, options=["--from-step", 20])
                self.assertSays(run, words, "replay from the start")
                self.checked(self.replay(0, trace=trace))


if __name__ == "__main__":
    harness.main()
