#!/usr/bin/env python3
"""clang-tidy over the product's sources, with the dev build's compile commands.

usage: tools/tidy.py [--all | FILE…]

Without an argument: all checks but the static analyzer on everything, and the analyzer on the sources that the change
touches. The former take the sources together as the build does. The change is since the branch left origin/main
(DEJA_TIDY_BASE names another commit). On main itself it is the three hours before its newest commit. A move, other
includes and comments do not count. --all: the analyzer on all of them, too. With files: everything, on those.

A clean result is remembered, and the source is not looked at again. Its key is a hash of everything that it depends
on: tool, configuration, compile command, source and each header that it includes. The memory is in DEJA_TIDY_CACHE,
else in ~/.cache/deja-tidy.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
FOLDERS = ("common", "api", "digest", "format", "preload", "recorder", "replayer", "loopback", "check", "read", "cli")
CACHE = Path(os.environ.get("DEJA_TIDY_CACHE") or Path.home() / ".cache" / "deja-tidy")
SINCE_S = 3 * 3600
# Lines of a diff that change nothing that is compiled.
SAME_CODE = re.compile(r"[+-]\s*(#\s*include\b.*|#\s*(ifndef|define|endif)\b.*_H_.*|//.*|\}?\s*(// )?namespace\b.*|)$")
NOISE = re.compile(r"^\d+ warnings? generated\.?$|^$")
# Sources that are compiled together are no headers, though one file includes them.
TOGETHER = ["--checks=-clang-analyzer-*,-bugprone-suspicious-include",
            rf"--header-filter=^{ROOT}/({'|'.join(FOLDERS)})/.*\.(h|cc)$"]
SWITCHED_OFF = re.findall(r"(?m)^ *(-clang-analyzer-[\w.]+)", (ROOT / ".clang-tidy").read_text(encoding="utf-8"))
ANALYZER = [f"--checks={','.join(['-*', 'clang-analyzer-*', *SWITCHED_OFF])}"]


@functools.lru_cache(maxsize=None)
def content(path):
    return hashlib.sha256(Path(path).read_bytes()).digest()


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True).stdout.split()


def sources():
    return git("ls-files", *(f"{folder}/*.cc" for folder in FOLDERS))


def touched():
    """The sources that the change touches, and the sources of the headers that it touches."""
    base = os.environ.get("DEJA_TIDY_BASE")
    if not base:
        head, left = git("rev-parse", "HEAD"), git("merge-base", "HEAD", "origin/main")
        newest = git("log", "-1", "--format=%ct")
        base = left[0] if left and left != head else (
            git("rev-list", "-1", f"--before={int(newest[0]) - SINCE_S}", "HEAD") or [""])[0]
    names = {re.sub(r"\.h$", ".cc", name) for name in changed_since(base)} if base else set()
    return [source for source in sources() if source in names]


def changed_since(base):
    """Files whose code differs, wherever they were at `base`."""
    diff = subprocess.run(["git", "diff", "-M40%", "-U0", "--no-color", base, "--", "*.cc", "*.h"], cwd=ROOT, check=False,
                          capture_output=True, text=True, errors="replace").stdout
    names, name = set(), None
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            name = line[len("+++ b/"):]
        elif line[:1] in "+-" and not line.startswith(("+++", "---")) and not SAME_CODE.match(line) and name:
            names.add(name)
    return names


class Commands:
    """The compile commands: of the files that the build compiles (together), and of each source by itself."""

    def __init__(self):
        self.compiled = {}  # file that is compiled -> (folder, words), of the product alone
        self.alone = {}     # source -> (folder, words)
        product = {str(ROOT / source) for source in sources()}
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
            words = [word for word in shlex.split(entry["command"]) if word != "ccache"]
            parts = re.findall(r'^#include "(/.*)"$', Path(path).read_text(encoding="utf-8"), re.M) \
                if "/Unity/unity_" in path else [path]
            parts = [part for part in parts if part in product]
            if parts and path not in self.compiled and not product.isdisjoint(parts):
                self.compiled[path] = (entry["directory"], words)
                for part in parts:
                    self.alone.setdefault(part, (entry["directory"], [part if word == path else word for word in words]))


@functools.lru_cache(maxsize=None)
def included(path):
    """Files of this project that `path` includes, at any depth; those of the system go with the tool's version."""
    found, left = set(), [path]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for asked in re.findall(r'^#\s*include "(.*)"', Path(name).read_text(encoding="utf-8", errors="replace"), re.M):
            for folder in (ROOT, ROOT / "include", ROOT / "include" / "compat", Path(name).parent, BUILD / "generated"):
                if (folder / asked).is_file():
                    left.append(os.path.normpath(folder / asked))
                    break
    return sorted(found)


def key_of(path, command, arguments, setting):
    key = hashlib.sha256(setting)
    for word in (*command[1], *arguments):
        key.update(word.replace(str(ROOT), ".").encode())
    for name in included(path):
        key.update(name.replace(str(ROOT), ".").encode())
        key.update(content(name))
    return key.hexdigest()


def check(tool, path, command, arguments):
    """Whether `path` is clean; prints what was found."""
    # The compiler's own warnings are the business of the build with clang.
    flags = [word for word in command[1][1:] if word not in ("-c", path, "-Werror")]
    ran = subprocess.run([tool, "--quiet", *arguments, path, "--", *flags], cwd=command[0], capture_output=True, text=True)
    said = [line for line in (ran.stdout + ran.stderr).splitlines() if not NOISE.match(line)]
    if said:
        print("\n".join(said), flush=True)
    return ran.returncode == 0


def main():
    tool = next(filter(None, map(shutil.which, ("clang-tidy-14", "clang-tidy-18", "clang-tidy"))), None)
    if tool is None:
        sys.exit("clang-tidy is not installed: tools/setup.sh --tests installs it")
    if not (BUILD / "compile_commands.json").exists():
        subprocess.run(["cmake", "--preset", "dev"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    commands = Commands()
    asked = sys.argv[1:]
    if asked and asked != ["--all"]:
        work = [(os.path.abspath(name), []) for name in asked]
    else:
        alone = sources() if asked else touched()
        work = [(path, TOGETHER) for path in commands.compiled]
        work += [(str(ROOT / source), ANALYZER) for source in alone]
    work = [(path, commands.compiled[path] if arguments is TOGETHER else commands.alone.get(path), arguments)
            for path, arguments in work]
    work = [job for job in work if job[1] is not None]
    version = subprocess.run([tool, "--version"], capture_output=True, check=True).stdout
    setting = hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes()).digest()
    keys = [key_of(*job, setting) for job in work]
    unchecked = [(job, key) for job, key in zip(work, keys) if not (CACHE / key).exists()]
    findings = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda one: check(tool, *one[0]), unchecked)
        for done, ((_, key), clean) in enumerate(zip(unchecked, results), 1):
            findings += not clean
            if clean:
                CACHE.mkdir(parents=True, exist_ok=True)
                (CACHE / key).touch()
            print(f"[{done}/{len(unchecked)}]", flush=True)
    print(f"clang-tidy: {len(unchecked)} looked at, {len(work) - len(unchecked)} known to be clean, {findings} with findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
