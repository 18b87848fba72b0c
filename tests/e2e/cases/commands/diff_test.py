#!/usr/bin/env python3
"""`deja diff` of real runs: the same, another seed, another rank."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402


class Diff(harness.DejaTest):
    def train(self, trace, *args):
        self.checked(self.record("digits_train", ["--steps=10", "--snapshot-every=1", *args], n=2, trace=trace))

    def diff(self, a, b, *options, code):
        return self.checked(self.deja("diff", self.trace_path(a), self.trace_path(b), *options), code)

    def test_the_same_run_twice_is_equal(self):
        for trace in ("a.deja", "b.deja"):
            self.train(trace, "--seed=7")
        self.assertRegex(self.diff("a.deja", "b.deja", code=0).stdout,
                         r"rank 0: equal: \d+ operations, \d+ snapshots, \d+ tensor digests\nrank 1: equal: .*\n$")
        compared = self.diff("a.deja", "b.deja", "--json", code=0).json()
        self.assertTrue(compared["equal"])
        self.assertGreater(compared["ranks"][0]["operations"], 20)
        self.assertGreater(compared["ranks"][0]["digests"], compared["ranks"][0]["operations"])

    def test_unseeded_runs_differ_from_what_their_entropy_gave(self):
        for trace in ("a.deja", "b.deja"):
            self.train(trace)
        text = self.diff("a.deja", "b.deja", code=harness.EXIT_DIVERGED).stdout
        first = text.splitlines()
        # Rank 0 draws the weights; the others get them: its line comes first.
        self.assertEqual(first[0], "rank 0: the first difference is Broadcast #1 of comm 0: its input differs")
        self.assertRegex(first[3], r"first at element \d+ of 9802: \S+ in A, \S+ in B; [\d,]+ differ")
        self.assertIn("Broadcast<float>", first[4])
        self.assertRegex(first[5], r"before it, at \S+ s, getrandom #1 of thread 0 gave other random bytes")

    def test_a_different_job_is_reported(self):
        self.train("a.deja", "--seed=7")
        self.train("b.deja", "--seed=7", "--bucket-kib=8")
        text = self.diff("a.deja", "b.deja", "--rank", 1, code=harness.EXIT_DIVERGED).stdout
        self.assertRegex(text, r"^not the same job: arguments: .* in A, .*--bucket-kib=8' in B\n"
                               r"rank 1: the first difference is AllReduce #\d+ of comm 0: other arguments\n"
                               r".* count=\d+ datatype=float32 op=sum\n")

    def test_two_ranks_of_one_run(self):
        self.train("a.deja")
        ranks = ("--rank", 0, "--with-rank", 1)
        ignored = ("--ignore", "*rng", "--ignore", "loss")
        run = self.checked(self.deja("diff", self.trace_path("a.deja"), *ranks, *ignored))
        self.assertRegex(run.stdout, r"^ranks 0 and 1: equal: \d+ operations")
        run = self.checked(self.deja("diff", self.trace_path("a.deja"), *ranks), harness.EXIT_DIVERGED)
        self.assertRegex(run.stdout, r"^ranks 0 and 1: the first difference is snapshot (.* rng|loss) \(#1\)")

    def test_incomparable_parts_are_reported(self):
        self.train("a.deja")
        asked = self.checked(self.deja("diff", self.trace_path("a.deja")), harness.EXIT_USAGE)
        self.assertIn("there is nothing to compare with", asked.stderr)
        missing = self.diff("a.deja", "nothing.deja", code=harness.EXIT_FAILURE)
        self.assertIn("nothing.deja", missing.stderr)
        self.assertIn("rank 7", self.diff("a.deja", "a.deja", "--rank", 7, code=harness.EXIT_FAILURE).stderr)


if __name__ == "__main__":
    harness.main()
