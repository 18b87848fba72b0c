#!/usr/bin/env python3
"""deja check on jobs of torch.distributed: what only their parameters, batches and tensors show."""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
import torch_jobs  # noqa: E402

SCORE = harness.ROOT / "tests" / "zoo" / "score.py"
CASES = ("torch_caught_exception", "torch_metric_keys", "torch_not_waited", "torch_resumed", "torch_set_epoch", "torch_stop_file",
         "torch_unused_parameters")


class Zoo(torch_jobs.TorchTest):
    def test_finds_what_is_wrong_and_nothing_else(self):
        done = subprocess.run([sys.executable, SCORE, "--build", harness.BUILD, *CASES], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}{done.stderr}")
        self.assertIn(f"{len(CASES)} of {len(CASES)} right", done.stdout)


class CheckNotes(torch_jobs.TorchTest):
    def notes_of(self, trace="run.deja"):
        """What was noted for deja check: its kind and its values."""
        texts = [event["text"] for event in self.show_json("--rank", 0, "--kind", "note", trace=trace)]
        return [{**dict(word.split("=", 1) for word in text.split()[1:]), "kind": text.split()[0]}
                for text in texts if text.startswith("check/")]


class Caught(CheckNotes):
    """Exceptions that a program has caught; it does as it does without Deja."""

    def test_are_noted_with_both_places(self):
        alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29671"}
        program = torch_jobs.APPS / "caught.py"
        unrecorded = self.checked(self.command([torch_jobs.PYTHON, program], env=alone))
        self.assertEqual(unrecorded.stdout, "[3.0, 3.0]\n")
        recorded = self.record_job("caught", 1)
        self.assertEqual(recorded.stdout, unrecorded.stdout)
        caught = [tuple(note[name].split("|")[0] for name in ("error", "text", "raised", "caught"))
                  for note in self.notes_of() if note["kind"] == "check/caught"]
        self.assertEqual(caught[:2], [
            ("Refused", "sample%202", "caught.py:34:parse", "caught.py:42:parsed"),
            ("FileNotFoundError", "2,%20No%20such%20file%20or%20directory", "caught.py:47:opened", "caught.py:49:opened"),
        ])
        self.assertEqual(caught[2][:3], ("RuntimeError", "in%20a%20thread", "caught.py:85:fail"))
        self.assertRegex(caught[2][3], r"^threading\.py:\d+:")
        # Neither hasattr() nor a loop that ends: these are caught in C. Thirty thousand at once are not all noted.
        self.assertEqual({error for error, *_ in caught[3:]}, {"KeyError", "Refused", "RecursionError"})
        self.assertLess(len(caught), 1000)
        self.assertIn("the same as recorded", self.checked(self.replay(0)).stdout)

    def test_are_noted_however_they_die(self):
        program = torch_jobs.APPS / "standalone" / "dying_exceptions.py"
        unrecorded = self.checked(self.command([torch_jobs.PYTHON, program])).stdout
        self.assertEqual(self.checked(self.record_single(torch_jobs.PYTHON, program)).stdout, unrecorded)
        groups = (
            *(f"{name} two%20of%20them in in_groups" for name in ("ExceptionGroup", "Ours")),
            *["ExceptionGroup parts in in_parts"] * 2,  # the whole, and the part that except* took
        ) if unrecorded == "has groups: True\n" else ()
        caught = sorted(f"{note['error']} {note['text']} in {note['caught'].split(':')[-1]}" for note in self.notes_of()
                        if note["kind"] == "check/caught")
        self.assertEqual(caught, sorted([
            *groups,
            "KeyError in%20a%20cycle in in_a_cycle",
            *(f"OSError attempt%20{number} in kept_in_a_variable" for number in range(3)),
            "ValueError alone in during_a_note",
        ]))
        self.assertEqual([note["caught"] for note in self.notes_of() if ":None:" in note.get("caught", "")], [])
        self.assertIn("the same as recorded", self.checked(self.replay(0)).stdout)

    def test_many_of_many_functions_are_not_all_noted(self):
        program = torch_jobs.APPS / "standalone" / "many_exceptions.py"
        self.assertEqual(self.checked(self.record_single(torch_jobs.PYTHON, program)).stdout, "300000\n")
        notes = sum(note["kind"] == "check/caught" for note in self.notes_of())
        self.assertGreaterEqual(notes, 64 * 100)
        self.assertLess(notes, 60000)  # 64 of each of a hundred functions, then 10 a second

    def test_those_of_other_interpreters_are_left_alone(self):
        program = torch_jobs.APPS / "standalone" / "interpreters.py"
        self.assertEqual(self.checked(self.command([torch_jobs.PYTHON, program])).stdout, "done\n")
        self.assertEqual(self.checked(self.record_single(torch_jobs.PYTHON, program)).stdout, "done\n")
        caught = {note["text"].split(":")[0] for note in self.notes_of() if note["kind"] == "check/caught"}
        self.assertEqual(caught, {"in%20the%20first%20one"})
        self.assertIn("the same as recorded", self.checked(self.replay(0)).stdout)

    def test_an_exception_of_a_signal_s_handler_is_the_program_s(self):
        """It comes while Deja notes another one, too."""
        program = torch_jobs.APPS / "standalone" / "interrupted.py"
        self.assertEqual(self.checked(self.command([torch_jobs.PYTHON, program])).stdout, "40 of 40\n")
        self.assertEqual(self.checked(self.record_single(torch_jobs.PYTHON, program)).stdout, "40 of 40\n")


class StateDigests(CheckNotes):
    """When parameters are noted, and how to have no notes."""

    PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(4, 2, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
for step in range(7):
    optimizer.zero_grad()
    model(torch.ones(4)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""

    def notes(self, *options, trace):
        script = self.dir / "train.py"
        script.write_text(self.PROGRAM)
        self.checked(self.record(torch_jobs.PYTHON, [script], n=1, level="digest", trace=trace, options=options))
        return self.notes_of(trace)

    def test_are_kept_every_n_steps_or_not_at_all(self):
        notes = self.notes("--state-digests", 3, trace="third.deja")
        weights = [note for note in notes if note["kind"] == "check/state"]
        self.assertEqual([int(note["step"]) for note in weights], [1, 3, 6])
        self.assertEqual({note["name"] for note in weights}, {"weight"})
        self.assertEqual(len({note["weight"] for note in weights}), 3, weights)  # they learn
        self.assertEqual(len({note["gradient"] for note in weights}), 1, weights)  # of one input
        self.assertEqual({note["at"].split("|")[0] for note in weights}, {"train.py:10:<module>"})
        rates = [(note["step"], note["lr"]) for note in notes if note["kind"] == "check/optimizer"]
        self.assertEqual(rates, [("1", "0.125"), ("3", "0.125"), ("6", "0.125")])
        every = [note for note in self.notes(trace="all.deja") if note["kind"] == "check/state"]
        self.assertEqual([int(note["step"]) for note in every], list(range(1, 8)))
        self.assertEqual([every[step - 1]["weight"] for step in (1, 3, 6)], [note["weight"] for note in weights])
        self.assertEqual(self.notes("--no-evidence", trace="none.deja"), [])


if __name__ == "__main__":
    harness.main()
