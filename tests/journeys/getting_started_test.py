"""docs/GETTING_STARTED.md: each command is typed on a terminal, from an installed Deja, and prints what stands there.

A line of `…` stands for any lines, and `…` in a line for any text. A number stands for any number, a space for any
spaces. `# Ctrl-C after "TEXT"` says when the user stops a command. `--write` prints what each command prints instead.
"""
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402
from terminal import Terminal  # noqa: E402
from torch_jobs import PYTHON, VERSION  # noqa: E402

DOCUMENT = ROOT / "docs" / "GETTING_STARTED.md"
COMMAND = re.compile(r"(?:\$|\(gdb\)) (.*?)(?:  +# Ctrl-C after \"(.*)\")?$")


def steps(text):
    """(command, when it is interrupted or None, [expected line, …]) of each command in the document's blocks."""
    found, is_block = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            is_block = not is_block
            continue
        command = COMMAND.match(line) if is_block else None
        if command:
            found.append((command.group(1), command.group(2), []))
        elif is_block and found:
            found[-1][2].append(line)
    return found


def pattern_of(expected):
    """A regular expression for the lines that a command prints."""
    lines = []
    for line in expected:
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            text = re.sub(r"\d+(?:[.,]\d+)*", "\0", line)
            text = re.sub(r"(?:\\ )+", r"[ \\t]+", re.escape(text))
            lines.append(text.replace("\0", r"\d+(?:[.,]\d+)*").replace("…", ".*") + r"\n")
    return re.compile("".join(lines) + r"\s*\Z")


class GettingStarted(unittest.TestCase):
    maxDiff = None

    @unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
    def test_each_command(self):
        folder = Path(tempfile.mkdtemp(prefix="deja-getting-started-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        harness.subprocess.run(["cmake", "--install", harness.BUILD, "--prefix", folder / "deja"], check=True,
                               stdout=harness.subprocess.DEVNULL)
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
        (folder / "bin" / "python3").chmod(0o755)
        (folder / "work").mkdir()
        terminal = Terminal(folder, f"{folder}/deja/bin:{folder}/bin:/usr/bin:/bin",
                            PKG_CONFIG_PATH=f"{folder}/deja/lib/pkgconfig", PYTHONWARNINGS="ignore")
        self.addCleanup(terminal.close)
        terminal.type("cd ~/work")
        for command, stop_at, expected in steps(DOCUMENT.read_text()):
            said = terminal.type(command, stop_at=stop_at)
            if "--write" in WRITE:
                print(f"$ {command}\n{said}", flush=True)
                continue
            with self.subTest(command=command):
                self.assertRegex(said if said.endswith("\n") or not said else said + "\n", pattern_of(expected))
        print(f"{len(terminal.typed)} commands, {terminal.seconds():.0f} s")


WRITE = [word for word in sys.argv[1:] if word == "--write"]

if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--write"]
    unittest.main(verbosity=2)
