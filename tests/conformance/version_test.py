#!/usr/bin/env python3
"""One version: the one of project() in CMakeLists.txt. All that states it takes it from there."""
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build"))


def found(pattern, path):
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.M)
    return match.group(1) if match else f"{path.name} states none"


class Version(unittest.TestCase):
    def test_all_state_the_same(self):
        version = found(r"project\(deja VERSION ([0-9.]+)", ROOT / "CMakeLists.txt")
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        command = subprocess.run([BUILD / "bin" / "deja", "--version"], capture_output=True, text=True, check=True).stdout
        python = subprocess.run([sys.executable, "-B", "-c", "import deja; print(deja.__version__)"], capture_output=True,
                                text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")}).stdout
        stated = {
            "deja --version": command.split()[-1],
            "deja.__version__": python.strip(),
            "deja.__version__ when installed": found(r'^VERSION = "(.*)"', BUILD / "generated" / "python" / "version.py"),
            "the Debian package": found(r'CPACK_PACKAGE_VERSION "(.*)"', BUILD / "CPackConfig.cmake"),
            "the CMake package": found(r'set\(PACKAGE_VERSION "(.*)"\)', BUILD / "packaging" / "DejaConfigVersion.cmake"),
            "deja.pc": found(r"^Version: (.*)$", BUILD / "packaging" / "deja.pc"),
            "deja-nccl-loopback.pc": found(r"^Version: (.*)$", BUILD / "packaging" / "deja-nccl-loopback.pc"),
        }
        self.assertEqual(set(stated.values()), {version}, json.dumps(stated, indent=1))

    def test_the_wheel_takes_it_from_the_project(self):
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        self.assertRegex(text, r'(?m)^dynamic = \["version"\]')
        self.assertNotRegex(text, r"(?m)^version\b")
        source, = re.findall(r'(?m)^input = "(.*)"', text)
        pattern, = re.findall(r"(?m)^regex = '(.*)'", text)
        taken = re.search(pattern, (ROOT / source).read_text(encoding="utf-8")).group("value")
        self.assertEqual(taken, found(r"project\(deja VERSION ([0-9.]+)", ROOT / "CMakeLists.txt"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
