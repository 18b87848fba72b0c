"""The tools that run the tests: what a report says is counted right, and the budget of processor time holds."""
import contextlib
import io
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import run_steps  # noqa: E402
import test_report  # noqa: E402

REPORT = """<testsuite>
<testcase name="unit/A.passes" time="1.5" status="run"><system-out>test_part (x.Y) ... skipped 'no GPU'</system-out></testcase>
<testcase name="unit/A.fails" time="0.5" status="fail"><failure/><system-out>first line
expected 3, got 4</system-out></testcase>
<testcase name="unit/A.skips" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>no MPI here</system-out></testcase>
<testcase name="unit/A.is_missing" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>"""
TABLE = """| step | budget, s | tests |
| --- | --- | --- |
| `dev: unit` | 1,000 | 3 |
| `dev: golden` | 4 | 1 |

| `dev: e2e` | 5 | another table |
"""


class FailsOnce(run_steps.Run):
    """A run of tests that fail, and pass when they are asked for by name."""

    def __init__(self, names):
        super().__init__([])
        self.names = names

    def command(self, step, argv, env=None, append=False):
        wanted = str(argv[argv.index("-R") + 1]) if "-R" in argv else ""
        cases = "".join(f'<testcase name="{name}" time="1" status="{"run" if wanted else "fail"}">'
                        f'{"" if wanted else "<failure/>"}</testcase>' for name in self.names if re.search(wanted, name))
        Path(argv[argv.index("--output-junit") + 1]).write_text(f"<testsuite>{cases}</testsuite>", encoding="utf-8")
        return run_steps.Ran(8, 1.0, 1.0), self.names


class TestSteps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.report, self.table = Path(folder.name, "report.xml"), Path(folder.name, "TESTING.md")
        self.report.write_text(REPORT, encoding="utf-8")
        self.table.write_text(TABLE, encoding="utf-8")

    def test_counts(self):
        self.assertEqual(test_report.counts(test_report.read(self.report)), [1, 2, 1])

    def test_skips_have_their_reasons(self):
        self.assertEqual(list(test_report.skips(test_report.read(self.report))),
                         ["unit/A.skips: no MPI here", "unit/A.passes, test_part: no GPU"])

    def test_a_failure_is_reported_with_its_output(self):
        failed = [case for case in test_report.read(self.report) if case.failed]
        self.assertEqual([case.name for case in failed], ["unit/A.fails", "unit/A.is_missing"])
        self.assertIn("expected 3, got 4", test_report.story(failed[0]))

    def test_a_fifth_more_than_the_row_is_over_budget(self):
        self.assertIsNone(test_report.over_budget("dev: unit", 1199, document=self.table))
        over = test_report.over_budget("dev: unit", 1201, document=self.table)
        self.assertIn("dev: unit: its tests took 1201 s", over)
        self.assertIn("the row in TESTING.md allows 1000 s", over)
        # On a machine that is half as fast it is not.
        self.assertIsNone(test_report.over_budget("dev: unit", 2399, 2, document=self.table))

    def test_a_step_of_seconds_may_take_some_more(self):
        self.assertIsNone(test_report.over_budget("dev: golden", 13, document=self.table))
        self.assertIn("4 s (14 s here)", test_report.over_budget("dev: golden", 15, document=self.table))

    def test_a_step_without_a_row_is_over_budget(self):
        self.assertIn("no row in TESTING.md", test_report.over_budget("dev: e2e", 1, document=self.table))

    def test_each_step_with_tests_has_its_row(self):
        rows = test_report.budgets()
        for name, _ in run_steps.steps_of("all"):
            if ": " in name and not name.endswith(": build"):
                self.assertIn(name, rows)

    def test_a_fuzzer_has_a_processor_of_its_own(self):
        self.assertEqual(run_steps.jobs_for(("fuzz",)), run_steps.JOBS)
        self.assertGreater(run_steps.jobs_for(("unit",)), run_steps.JOBS)
        self.assertGreater(run_steps.jobs_for(("e2e", "torch")), run_steps.jobs_for(("unit",)))

    def test_a_failure_is_said_at_once(self):
        run = run_steps.Run([])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            run.fail("dev: unit", "expected 3, got 4")
        self.assertEqual(said.getvalue(), "FAILED: dev: unit\n")
        self.assertEqual(run.shown, [("dev: unit", "expected 3, got 4")])

    def test_what_a_fuzzer_found_stays_found(self):
        """Its next run draws other inputs. What passes alone is unstable, and does not fail the run."""
        failures = [["fuzz/fuzz_serve"], ["unit/A.fails"], ["unit/A.fails", "fuzz/fuzz_serve"]]
        for names, unstable, failed in zip(failures, ([], ["dev: unit/A.fails"], ["dev: unit/A.fails"]),
                                           (["dev: fuzz"], [], ["dev: fuzz"])):
            with self.subTest(names), mock.patch.object(run_steps, "folder_of", lambda _: self.report.parent), \
                    mock.patch.object(test_report, "over_budget", lambda *_: None), \
                    contextlib.redirect_stdout(io.StringIO()):
                run = FailsOnce(names)
                run.tests("dev", ("fuzz",))
                self.assertEqual((run.unstable, run.failed), (unstable, failed))
                self.assertEqual(len(run.shown), len(names))

    def test_all_has_what_a_push_has_and_nightly_what_all_has(self):
        names = {kind: [name for name, _ in run_steps.steps_of(kind)] for kind in ("quick", "push", "all", "nightly")}
        for less, more in (("quick", "push"), ("push", "all"), ("all", "nightly")):
            self.assertLess(set(names[less]), set(names[more]))

    def test_a_fuzzer_that_finds_something_has_failed(self):
        """libFuzzer's own code for that is 77, which ctest takes for a skipped test."""
        program = self.report.with_name("fuzz_nothing")
        program.write_text('#!/bin/sh\nfor a; do case $a in -artifact_prefix=*) echo found > "${a#*=}crash-1";; esac; done\n'
                           "exit 77\n", encoding="utf-8")
        program.chmod(0o755)
        ended = subprocess.run([sys.executable, ROOT / "tests" / "fuzz" / "run_fuzzer.py", program], capture_output=True,
                               text=True, check=False)
        self.assertEqual(ended.returncode, 1, ended)
        self.assertIn("input crash-1: " + b"found\n".hex(), ended.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
