#!/usr/bin/env python3
"""The DEJA_* variables. Only common/env_vars.def names them in C++; Python and shell name no others, and options that
become one have its values.

Usage: variables_test.py DEJA
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEJA = sys.argv.pop(1) if len(sys.argv) > 1 else None
PRODUCT = ("common", "api", "digest", "format", "preload", "recorder", "replayer", "loopback", "check", "cli")
ROW = re.compile(r'DEJA_ENV\((k\w+), (DEJA_\w+), (\w+), "([^"]*)",\s*"([^"]*)"\)')
ROWS = ROW.findall((ROOT / "common/env_vars.def").read_text())
NAMES = {name for _, name, *_ in ROWS}
VALUES = {constant: values.removesuffix(": ").split(", ") for constant, _, _, values, _ in ROWS if values}

# Variables of builds, tests and tools, which the product does not read.
OTHERS = re.compile(r"DEJA_(TEST_\w*|CHECK_LOG|FUZZ_\w+|TIDY_\w+|FAKE_NCCL_\w+|FAULT_MODES|BUILD_DIR|TORCH_PYTHON|JOBS|APART|ALLOCATORS|WHEEL"
                    r"|OLD_ROOT|REPLAYS|GOTO_\w+|(?:NCCL|CUDA|CURAND|MPI)_\w+|LIKE|OUTSIDE|OF_THE_PROGRAM|PAD_.*)")
# Parameters of the loopback library, as NCCL has them: for its users, and seen by the program.
LOOPBACK = re.compile(r"DEJA_LOOPBACK_\w+")
# Where "DEJA_…" in Python or shell is a variable of the environment.
IN_SCRIPTS = re.compile(r"""(?:environ|getenv|variable|env)\b[^\n]*?["'{ (,](DEJA_\w+)|\$\{?(DEJA_\w+)|export (DEJA_\w+)"""
                        r"""|["'](DEJA_\w+)["']\s*:""")
# Options of `deja record` and `deja replay` that become a variable.
OPTIONS = {"record": {"--level": "kLevel", "--codec": "kCodec", "--cuda-graphs": "kCudaGraphs", "--inputs": "kInputs",
                      "--device-digests": "kDeviceDigests", "--on-pressure": "kOnPressure", "--threads": "kThreads"},
           "replay": {"--clock": "kClock"}}


def tracked(*patterns):
    return [ROOT / name for name in subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT,
                                                   check=True, capture_output=True, text=True).stdout.split()]


def product():
    return [path for path in tracked("*.cc", "*.h") if path.relative_to(ROOT).parts[0] in PRODUCT]


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


class Variables(unittest.TestCase):
    def test_the_table_is_read_whole(self):
        rows = len(re.findall(r"(?m)^DEJA_ENV\(", (ROOT / "common/env_vars.def").read_text()))
        self.assertEqual(len(ROWS), rows)
        self.assertEqual(len({constant for constant, *_ in ROWS}), rows)
        self.assertEqual(len(NAMES), rows)

    def test_choices_and_only_they_have_values(self):
        for constant, name, kind, values, _ in ROWS:
            self.assertEqual(kind == "Choice", bool(values), name)

    def test_no_source_of_the_product_spells_a_variable(self):
        files = [path for path in product() if path != ROOT / "common/env_vars.h"]
        self.assertGreater(len(files), 500)
        spelled = [f"{path.relative_to(ROOT)}: {name}" for path in files
                   for name in re.findall(r'"(DEJA_[A-Z][A-Z_0-9]*)', without_comments(path.read_text()))
                   if not LOOPBACK.fullmatch(name)]
        self.assertEqual(spelled, [])

    def test_each_variable_is_used(self):
        text = "\n".join(path.read_text() for path in product())
        for constant, *_ in ROWS:
            self.assertRegex(text, rf"\benv::{constant}\b|\b{constant}\.name\b", constant)

    def test_values_that_are_asked_for_are_in_the_table(self):
        asked = [(path, *found) for path in product()
                 for found in re.findall(r'(?:OwnVariableIs|Entry)\(\s*env::(k\w+),\s*"([^"]*)"', path.read_text())]
        self.assertGreater(len(asked), 8)
        for path, constant, value in asked:
            if constant in VALUES:
                self.assertIn(value, VALUES[constant], path)

    def test_tests_and_scripts_use_names_of_the_table(self):
        found = []
        for path in tracked("tests/*.cc", "tests/*.h", "benchmarks/*.cc"):
            found += [(path, name) for name in re.findall(r'"(DEJA_[A-Z_0-9]+)[="]', without_comments(path.read_text()))]
        for path in tracked("*.py", "*.sh"):
            found += [(path, next(filter(None, names))) for names in IN_SCRIPTS.findall(path.read_text())]
        self.assertGreater(len(found), 60)
        strange = [f"{path.relative_to(ROOT)}: {name}" for path, name in found
                   if name not in NAMES and not OTHERS.fullmatch(name) and not LOOPBACK.fullmatch(name)]
        self.assertEqual(strange, [])

    def test_options_have_the_values_of_their_variables(self):
        listed = subprocess.run([DEJA, "help", "--json"], check=True, capture_output=True, text=True).stdout
        commands = {command["name"]: command for command in json.loads(listed)["commands"]}
        for command, options in OPTIONS.items():
            for option, constant in options.items():
                choices, = (o["choices"] for o in commands[command]["options"] if option in o["names"])
                self.assertEqual(sorted(choices), sorted(VALUES[constant]), option)


if __name__ == "__main__":
    unittest.main()
