#!/usr/bin/env python3
"""CHANGELOG.md has the form of keepachangelog.com, and its newest version is the project's."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


class Changelog(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / "CHANGELOG.md").read_text()
        self.headings = re.findall(r"(?m)^## (.*)$", self.text)

    def test_the_newest_version_is_the_projects(self):
        project = re.search(r"project\(deja VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        versions = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", h) for h in self.headings if h != "[Unreleased]"]
        self.assertTrue(versions and all(versions), self.headings)
        self.assertEqual(versions[0].group(1), project)
        numbers = [tuple(map(int, v.group(1).split("."))) for v in versions]
        self.assertEqual(numbers, sorted(numbers, reverse=True), "newest first")

    def test_the_form(self):
        self.assertIn("keepachangelog.com", self.text)
        self.assertEqual(self.headings[0], "[Unreleased]")
        for kind in re.findall(r"(?m)^### (.*)$", self.text):
            self.assertIn(kind, KINDS)
        self.assertFalse(re.findall(r"(?m)^#{4,} ", self.text))

    def test_each_version_says_something(self):
        for section in self.text.split("\n## ")[2:]:
            self.assertRegex(section, r"(?m)^- \S", section.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
