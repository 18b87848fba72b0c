#!/usr/bin/env python3
"""`deja bisect`: the first difference of all ranks, and the replay that leads to it."""
import re
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

# States that each rank has for itself.
OWN = [word for name in ("*rng", "loss", "sampler", "sample weights", "fault*", "dropout") for word in ("--ignore", name)]


class Bisect(harness.DejaTest):
    def train(self, trace, *args, code=0, every=10):
        options = ["--checkpoint-every", every] if every else []
        self.checked(self.record("digits_train", ["--batch=16", "--snapshot-every=1", *args], trace=trace, options=options), code)

    def bisect(self, a, *args, code=harness.EXIT_DIVERGED):
        return self.checked(self.deja("bisect", self.trace_path(a), *args), code)

    def steps_of(self, text):
        return [int(step) for step in re.findall(r"^  [AB]  step (\d+),", text, re.MULTILINE)]

    def train_corrupt(self):
        """A value of what one rank receives is wrong in some step after step 40: chance decides which, and the seed is
        the chance."""
        self.train("good.deja", "--steps=60", "--seed=5")
        self.train("bad.deja", "--steps=60", "--seed=5", "--fault=corrupt", code=1)

    def test_two_runs_of_which_one_is_corrupted_at_a_late_step(self):
        self.train_corrupt()
        found = self.bisect("good.deja", self.trace_path("bad.deja"))
        self.assertRegex(found.stdout, r"rank 0: the first difference is snapshot \S+ \(#\d+\): it differs\n")
        self.assertRegex(found.stdout, r"  first at element \d+ of \d+: \S+ in A, \S+ in B")
        self.assertIn("differ later: ranks 1, 2, 3\n", found.stdout)
        step, other = self.steps_of(found.stdout)
        self.assertEqual(step, other)
        commands = re.findall(r"^   (deja replay .*)$", found.stdout, re.MULTILINE)
        self.assertEqual(len(commands), 2, found.stdout)
        for command in commands:
            self.assertIn(f"--from-step {step // 10 * 10} --until-step {step}", command)
            replay = self.checked(self.deja(*[word for word in shlex.split(command)[1:] if word != "--gdb"]))
            self.assertIn(f"ended where it was asked to: step {step} begins", replay.stdout)
            self.assertIn(f"from the checkpoint at step {step // 10 * 10}\n", replay.stderr)

    def test_a_damaged_checkpoint_is_no_place_to_start_at(self):
        self.train_corrupt()
        step = self.bisect("good.deja", self.trace_path("bad.deja"), "--json").json()["first"]["difference"]["a"]["step"]
        last = step // 10 * 10
        items = [e for e in self.show_json("--rank", 0, "--kind", "snapshot", trace="bad.deja") if e.get("checkpoint")]
        hashes = {}
        for item in items:
            hashes.setdefault(item["name"], []).append(item["tensor"]["hash"])
        name = next(name for name, all_of_it in hashes.items() if len(set(all_of_it)) == len(all_of_it))  # none is another one's, too
        self.damage_checkpoint(last, name, trace="bad.deja")
        found = self.bisect("good.deja", self.trace_path("bad.deja"))
        self.assertIn(f"B  the checkpoint at step {last} is damaged and is not used: the bytes of '{name}' on rank 0 cannot be read: ",
                      found.stdout)
        self.assertNotIn("A  the checkpoint", found.stdout)
        self.assertIn(f"A  from the checkpoint of step {last}:\n", found.stdout)
        self.assertIn(f"B  from the checkpoint of step {last - 10}:\n", found.stdout)
        self.assertRegex(found.stdout, rf"deja replay \S+bad.deja --rank 0 --gdb --from-step {last - 10} --until-step {step}\n")
        ways = self.bisect("good.deja", self.trace_path("bad.deja"), "--json").json()["replays"]
        self.assertEqual([[d["step"] for d in way.get("damaged_checkpoints", [])] for way in ways], [[], [last]])

    def test_ranks_that_should_agree(self):
        self.train_corrupt()
        self.bisect("good.deja", "--ranks", "0-3", *OWN, code=0)
        found = self.bisect("bad.deja", "--ranks", "0,1,3", *OWN)
        self.assertRegex(found.stdout, r"^ranks 0 and 1: the first difference is snapshot")
        self.assertIn("differ later: rank 3\n", found.stdout)
        json = self.bisect("bad.deja", "--ranks", "0,1,3", *OWN, "--json").json()
        self.assertFalse(json["equal"])
        self.assertEqual(json["first"]["with_rank"], 1)
        step = json["first"]["difference"]["a"]["step"]
        self.assertEqual([way["checkpoint_step"] for way in json["replays"]], [step // 10 * 10] * 2)
        self.assertEqual([f"--rank {rank} " in way["command"] for rank, way in enumerate(json["replays"])], [True, True])

    def test_seeds(self):
        self.train("a.deja", "--steps=5", "--seed=7", every=0)
        self.train("b.deja", "--steps=5", "--seed=8", every=0)
        text = self.bisect("a.deja", self.trace_path("b.deja")).stdout
        self.assertIn("\nrank 0: the first difference is Broadcast #1 of comm 0: its input differs\n", text)
        self.assertIn("A  from the start (it is before the first step):\n", text)
        self.assertRegex(text, r"deja replay \S+a.deja --rank 0 --gdb --until-seq 1 --comm 0\n")
        json = self.bisect("a.deja", self.trace_path("a.deja"), "--json", code=0).json()
        self.assertTrue(json["equal"])
        self.assertEqual(json["replays"], [])

    def test_incomparable_parts_are_reported(self):
        self.train("a.deja", "--steps=2", every=0)
        self.assertIn("there is nothing to compare with", self.bisect("a.deja", code=harness.EXIT_USAGE).stderr)
        self.assertIn("not a list of ranks", self.bisect("a.deja", "--ranks", "1-", code=harness.EXIT_USAGE).stderr)
        self.assertIn("rank 9", self.bisect("a.deja", "--ranks", "0,9", code=harness.EXIT_FAILURE).stderr)


if __name__ == "__main__":
    harness.main()
