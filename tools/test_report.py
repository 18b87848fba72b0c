#!/usr/bin/env python3
"""What a ctest run found, from the JUnit file that it wrote, and the budget of processor time in docs/TESTING.md.

usage: tools/test_report.py FILE (--counts | --skipped | --failed)

--counts prints three numbers: passed, failed, skipped. Option --skipped prints each skipped test with its reason, also
the parts that a Python test left out. Option --failed prints each failed test with the end of what it said.
"""
import dataclasses
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

BUDGET = Path(__file__).resolve().parents[1] / "docs" / "TESTING.md"
TOLERANCE = 1.2
NOISE_S = 10             # of processor time: steps of a few seconds vary by more than a fifth
REFERENCE_PACE_S = 1.5   # run_steps.pace() on the machine of that table
KEPT_LINES = 60


@dataclasses.dataclass
class Case:
    name: str
    seconds: float
    passed: bool
    skipped: bool
    said: str

    @property
    def failed(self):
        return not self.passed and not self.skipped


def read(report):
    found = []
    for case in ElementTree.parse(report).getroot().findall("testcase"):
        mark = case.find("skipped")
        # Skipped by itself: a test whose program is missing is "skipped" for ctest, too, and has failed.
        skipped = mark is not None and mark.get("message", "").startswith("SKIP_")
        found.append(Case(case.get("name"), float(case.get("time", 0)), case.get("status") == "run", skipped,
                          (case.findtext("system-out") or "").strip()))
    return found


def counts(cases):
    return [sum(case.passed for case in cases), sum(case.failed for case in cases),
            sum(case.skipped for case in cases)]


def reason(case):
    """Why a test was skipped: what GTEST_SKIP() << was given, else what it printed last."""
    match = re.search(r": Skipped\n(.*?)\n\s*\[  SKIPPED \]", case.said, re.S)
    if match:
        return " ".join(match.group(1).split())
    return case.said.splitlines()[-1].strip() if case.said else "it did not say why"


def skips(cases):
    """A line for each skipped test, and for each of unittest's skipped methods in a test that ran."""
    for case in cases:
        if case.skipped:
            yield f"{case.name}: {reason(case)}"
    for case in cases:
        if case.passed:
            for name, why in re.findall(r"(?m)^(\w+) \(.*\.\.\. skipped ['\"](.*)['\"]$", case.said):
                yield f"{case.name}, {name}: {why}"


def story(case):
    said = case.said.splitlines()
    return "\n".join([f"failed: {case.name}, which printed {len(said)} lines",
                      *(f"    {line}" for line in said[-KEPT_LINES:])])


def budgets(document=BUDGET):
    """Step -> seconds of processor time, from the table whose head begins with `| step | budget`."""
    rows, inside = {}, False
    for line in document.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if line.startswith("| step | budget"):
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and len(cells) > 1 and re.fullmatch(r"[\d,]+", cells[1]):
            rows[cells[0]] = int(cells[1].replace(",", ""))
    return rows


def over_budget(step, used, pace=1.0, document=BUDGET):
    """A sentence if the step took over 20% (and NOISE_S) more than its row allows on a machine of that pace, else
    None."""
    allowed = budgets(document).get(step)
    if allowed is None:
        return f"{step}: no row in {document.name}; add one with {used:.0f} s"
    most = allowed * pace + max(allowed * pace * (TOLERANCE - 1), NOISE_S)
    if used <= most:
        return None
    return (f"{step}: its tests took {used:.0f} s of processor time, the row in {document.name} allows {allowed} s"
            f" ({most:.0f} s here); make them cheaper, or raise the row and say why")


def main():
    cases = read(sys.argv[1])
    if sys.argv[2] == "--counts":
        print(*counts(cases))
    elif sys.argv[2] == "--failed":
        for case in cases:
            if case.failed:
                print(story(case))
    else:
        for line in skips(cases):
            print(f"skipped: {line}")


if __name__ == "__main__":
    main()
