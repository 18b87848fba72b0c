#!/usr/bin/env python3
"""Checks what the documents quote: links, paths of the tree, `deja` commands and their flags (gdb's too). docs/CLI.md
must be what the commands' --help says. `tools/check_docs.py --write` regenerates docs/CLI.md.

Usage: check_docs.py [--write] PATH_TO_DEJA
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("common", "api", "digest", "format", "preload", "recorder", "replayer", "loopback", "check", "cli", "python", "gdb", "include",
           "examples", "tests", "benchmarks", "cmake", "packaging", "tools", "docs")


def run_help(deja, *words):
    done = subprocess.run([deja, *words, "--help"], capture_output=True, text=True, check=True)
    return done.stdout.rstrip()


def all_help(deja):
    """The commands and topics, as data."""
    return json.loads(subprocess.run([deja, "help", "--json"], capture_output=True, text=True, check=True).stdout)


def commands(deja):
    """Names of all commands, in the order of the help."""
    return [command["name"] for command in all_help(deja)["commands"]]


def gdb_commands():
    """First words of the commands that `deja help` lists in gdb."""
    listed = re.search(r"^HELP = \[(.*?)^\]", (ROOT / "gdb" / "deja_gdb" / "commands.py").read_text(), re.S | re.M).group(1)
    return {m.group(1) for m in re.finditer(r"^    \(\"([a-z-]+)", listed, re.M)}


def cli_document(deja):
    parts = ["# Command line", "",
             "Generated from the commands' own help by `tools/check_docs.py --write`; a test compares the two.", "",
             "```", run_help(deja), "```"]
    for name in commands(deja):
        parts += ["", f"## deja {name}", "", "```", run_help(deja, name), "```"]
    parts += ["", "## Topics"]
    for topic in all_help(deja)["topics"]:
        parts += ["", f"### deja help {topic['name']}", "", "```", topic["text"].rstrip(), "```"]
    return "\n".join(parts) + "\n"


def documents():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split()]


def check_links(path, text, problems):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target and not (path.parent / target).exists():
            problems.append(f"link to {target}, which is not there")


def check_paths(text, problems):
    """Paths in backquotes that begin with a folder of the tree must exist (wildcards too)."""
    for quoted in re.findall(r"`([^`\n]+)`", text):
        word = quoted.strip().split()[0] if quoted.strip() else ""
        word = word.split(":")[0].rstrip("/")
        if word.split("/")[0] not in FOLDERS or "/" not in word or re.search(r"[<>$]|NAME|…", word):
            continue
        pattern = re.sub(r"\{([^}]*)\}", "*", word)
        if not any(ROOT.glob(pattern)):
            problems.append(f"path `{word}`, which is not there")


def check_commands(text, deja, known, problems):
    """Every `deja …` quoted in a code span or block must be a command with the flags that it is given."""
    quoted = re.findall(r"`(deja [^`\n]+)`", text)
    for block in re.findall(r"```[a-z]*\n(.*?)```", text, re.S):
        for line in block.splitlines():
            m = re.match(r"\s*(?:\$ )?(?:\S*/)?(deja [a-z].*)$", line)
            if m:
                quoted.append(m.group(1))
    for line in quoted:
        line = re.sub(r"\s{2,}.*$|\s+#.*$", "", line)
        words = line.split(" -- ")[0].split()
        if len(words) < 2 or not re.fullmatch(r"[a-z][a-z-]*", words[1]):
            continue
        if words[1] in gdb_commands() and not any(w.startswith("--") for w in words):
            continue
        if words[1] not in known:
            problems.append(f"`{line}`: there is no command {words[1]}")
            continue
        for flag in re.findall(r"(?<!\S)(--[a-z][a-z-]*)", line.split(" -- ")[0]):
            if flag not in known[words[1]]:
                problems.append(f"`{line}`: {words[1]} has no {flag}")


def main():
    write = "--write" in sys.argv
    deja = [a for a in sys.argv[1:] if not a.startswith("--")][0]
    document = cli_document(deja)
    target = ROOT / "docs" / "CLI.md"
    if write:
        target.write_text(document)
        return 0
    known = {name: run_help(deja, name) for name in commands(deja)}
    failed = False
    if not target.exists() or target.read_text() != document:
        print("docs/CLI.md is not what --help says; run tools/check_docs.py --write build/bin/deja")
        failed = True
    for path in documents():
        text = path.read_text()
        problems = []
        check_links(path, text, problems)
        if path != target:
            check_paths(text, problems)
            check_commands(text, deja, known, problems)
        for problem in problems:
            print(f"{path.relative_to(ROOT)}: {problem}")
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
