#!/usr/bin/env python3
"""The report of a replay: every kind of format/scratch/report_lines.def is written by the replay library, no source spells a
kind or a file of the scratch folder past the table, and Python that reads lines or files uses names of the table."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = (ROOT / "format/scratch/report_lines.def").read_text()
KINDS = dict(re.findall(r'(?m)^DEJA_REPORT_LINE\((\w+), "([\w-]+)"', TABLE))
FIELDS = set(re.findall(r"(?m)^DEJA_REPORT_FIELD\([^,]+, (\w+),", TABLE)) | {"kind", "child", "cut"}
NAMES = set(re.findall(r'"/([\w.-]+)"', (ROOT / "format/scratch/scratch_names.h").read_text()))
NAMES.remove("children")  # also a file of /proc
# Python that looks into lines of the report, and the variables that hold them.
READERS = {"tests/e2e/cases/replay/replay_divergence_test.py": "first|second", "tests/e2e/cases/replay/fold_test.py": "d"}


def tracked(*patterns):
    return [ROOT / name for name in subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT,
                                                   check=True, capture_output=True, text=True).stdout.split()]


def text_of(*folders):
    return "\n".join(path.read_text() for folder in folders for path in tracked(f"{folder}/*.cc", f"{folder}/*.h"))


class ReportLines(unittest.TestCase):
    def test_the_table_is_read_whole(self):
        self.assertEqual(len(KINDS), len(re.findall(r"(?m)^DEJA_REPORT_LINE", TABLE)))
        self.assertEqual(len(set(KINDS.values())), len(KINDS))
        opened = re.findall(r"(?m)^DEJA_REPORT_(LINE|PART|END)", TABLE)
        self.assertEqual(opened.count("END"), len(opened) - opened.count("END"))

    def test_each_kind_is_written(self):
        replayer = text_of("replayer")
        for name in KINDS:
            self.assertRegex(replayer, rf"\b{name}Line\b", name)

    def test_no_source_builds_or_takes_apart_a_line_by_itself(self):
        for path in tracked("replayer/*.cc", "replayer/*.h", "cli/replay/*.cc", "cli/replay/*.h"):
            name = path.relative_to(ROOT).as_posix()
            text = re.sub(r"//[^\n]*", "", path.read_text())
            if name != "replayer/report/report.h":
                self.assertNotIn("JsonLine text", text, name)
            self.assertNotRegex(text, r'\["kind"\]', name)
            for spelled in re.findall(r'"/([\w.-]+)"', text):
                self.assertNotIn(spelled, NAMES, name)

    def test_python_uses_names_of_the_table(self):
        for name, variables in READERS.items():
            used = re.findall(rf'\b(?:{variables})\["(\w+)"\]', (ROOT / name).read_text())
            self.assertTrue(used, name)
            for field in used:
                self.assertIn(field, FIELDS, name)
        found = 0
        for path in tracked("tests/*.py", "gdb/*.py", "python/*.py", "benchmarks/*.py"):
            text = path.read_text()
            for kind in re.findall(r'"kind\\?":\\?"([\w-]+)', text) if "report.jsonl" in text else ():
                self.assertIn(kind, KINDS.values(), path)
                found += 1
        self.assertGreater(found, 0)


if __name__ == "__main__":
    unittest.main()
