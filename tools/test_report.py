#!/usr/bin/env python3
"""What a ctest run found, from the JUnit file that it wrote.

usage: tools/test_report.py FILE (--counts | --skipped | --failed)

--counts prints three numbers: passed, failed, skipped. --skipped prints each skipped test with its reason, also the
parts that a Python test left out. --failed prints each failed test with the end of what it said.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def was_skipped(case):
    """Skipped by itself: a test whose program is missing is "skipped" for ctest, too, and has failed."""
    mark = case.find("skipped")
    return mark is not None and mark.get("message", "").startswith("SKIP_")


def reason(case):
    """Why a test was skipped: what GTEST_SKIP() << was given, else what it printed last."""
    text = (case.findtext("system-out") or "").strip()
    match = re.search(r": Skipped\n(.*?)\n\s*\[  SKIPPED \]", text, re.S)
    if match:
        return " ".join(match.group(1).split())
    return text.splitlines()[-1].strip() if text else "it did not say why"


def skipped_parts(case):
    """(name, reason) of unittest's skipped methods in a test that ran."""
    return re.findall(r"(?m)^(\w+) \(.*\.\.\. skipped ['\"](.*)['\"]$", case.findtext("system-out") or "")


KEPT_LINES = 60


def show_failure(case):
    said = (case.findtext("system-out") or "").strip().splitlines()
    print(f"failed: {case.get('name')}, which printed {len(said)} lines")
    for line in said[-KEPT_LINES:]:
        print(f"    {line}")


def main():
    cases = ElementTree.parse(sys.argv[1]).getroot().findall("testcase")
    skipped = [c for c in cases if was_skipped(c)]
    passed = [c for c in cases if c.get("status") == "run"]
    if sys.argv[2] == "--counts":
        print(len(passed), len(cases) - len(passed) - len(skipped), len(skipped))
        return
    if sys.argv[2] == "--failed":
        for case in cases:
            if case not in passed and case not in skipped:
                show_failure(case)
        return
    for case in skipped:
        print(f"skipped: {case.get('name')}: {reason(case)}")
    for case in passed:
        for name, why in skipped_parts(case):
            print(f"skipped: {case.get('name')}, {name}: {why}")


if __name__ == "__main__":
    main()
