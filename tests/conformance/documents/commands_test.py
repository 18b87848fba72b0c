#!/usr/bin/env python3
"""Every cli/cmd_*.cc defines commands that are in the array of cli/commands/commands.cc and in `deja --help`."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEJA = sys.argv.pop()


class Commands(unittest.TestCase):
    def test_every_command_is_listed_once(self):
        defined = []
        for path in sorted((ROOT / "cli" / "commands").glob("cmd_*.cc")):
            found = re.findall(r"^const Command (k\w+Command) = \{\s*\"([a-z-]+)\"", path.read_text(), re.M)
            self.assertTrue(found, f"{path.name} defines no command")
            defined += found
        array = (ROOT / "cli" / "commands" / "commands.cc").read_text()
        listed = re.findall(r"&(k\w+Command)\b", array)
        self.assertEqual(sorted(listed), sorted(constant for constant, _ in defined))
        text = subprocess.run([DEJA, "--help"], capture_output=True, text=True, check=True).stdout
        for _, name in defined:
            self.assertRegex(text, rf"(?m)^  {name} ")

    def test_every_command_has_json_and_examples(self):
        listed = subprocess.run([DEJA, "help", "--json"], capture_output=True, text=True, check=True).stdout
        names = [command["name"] for command in json.loads(listed)["commands"]]
        self.assertGreater(len(names), 5)
        for name in names:
            help_text = subprocess.run([DEJA, name, "--help"], capture_output=True, text=True, check=True).stdout
            self.assertIn("--json", help_text, name)
            self.assertRegex(help_text, rf"Examples:\n +(deja {name}|.*deja {name})", name)

    def test_usage_errors_exit_2_and_say_what_is_wrong(self):
        for words in (["frobnicate"], [], ["info"], ["info", "x.deja", "--frobnicate"]):
            done = subprocess.run([DEJA, *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, words)
            self.assertEqual(done.stdout, "", words)
            self.assertTrue(done.stderr.startswith("deja: "), done.stderr)


if __name__ == "__main__":
    unittest.main()
