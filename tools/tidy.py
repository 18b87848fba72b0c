#!/usr/bin/env python3
"""clang-tidy over the product's sources, with the dev build's compile commands. Arguments: files, or none for all.

What was found to be clean is not looked at again: a clean result is remembered by a hash of everything that it depends
on (the tool, its configuration, the compile command, the source and each header that the build saw it include). The
memory is in DEJA_TIDY_CACHE, else in ~/.cache/deja-tidy; a file that has not been built is always looked at.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
FOLDERS = ("common", "format", "preload", "recorder", "replayer", "loopback", "cli")
CACHE = Path(os.environ.get("DEJA_TIDY_CACHE") or Path.home() / ".cache" / "deja-tidy")
NOISE = re.compile(r"^\d+ warnings? generated\.?$|^$")


@functools.lru_cache(maxsize=None)
def content(path):
    return hashlib.sha256(Path(path).read_bytes()).digest()


def sources():
    listed = subprocess.run(["git", "ls-files", *(f"{folder}/*.cc" for folder in FOLDERS)], cwd=ROOT, check=True,
                            capture_output=True, text=True)
    return listed.stdout.split()


def compile_commands():
    """Absolute source -> (its command without this checkout's place, object)."""
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        source = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        command = entry["command"]
        commands.setdefault(source, (command.replace(str(ROOT), "."), re.search(r" -o (\S+)", command)[1]))
    return commands


def dependencies():
    """Object -> files that its last build read; what is out of date is not there."""
    listed = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], capture_output=True, text=True)
    found, current = {}, None
    for line in listed.stdout.splitlines():
        head = re.match(r"(\S.*): #deps \d+, .*\((VALID|STALE)\)$", line)
        if head:
            current = found.setdefault(head[1], []) if head[2] == "VALID" else None
        elif line.strip() and current is not None:
            current.append(os.path.normpath(BUILD / line.strip()))
    return found


def key_of(source, setting, commands, read_by):
    """What a clean result of `source` depends on; None where that is not known."""
    command, output = commands.get(str(ROOT / source), (None, None))
    files = read_by.get(output)
    if not files:
        return None
    key = hashlib.sha256(setting)
    key.update(command.encode())
    try:
        for path in files:
            key.update(os.path.relpath(path, ROOT).encode() if path.startswith(str(ROOT)) else path.encode())
            key.update(content(path))
    except OSError:
        return None
    return key.hexdigest()


def check(tool, source):
    """Whether `source` is clean; prints what was found."""
    ran = subprocess.run([tool, "-p", str(BUILD), "--quiet", source], cwd=ROOT, capture_output=True, text=True)
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
    files = [os.path.relpath(os.path.abspath(name), ROOT) for name in sys.argv[1:]] or sources()
    version = subprocess.run([tool, "--version"], capture_output=True, check=True).stdout
    setting = hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes()).digest()
    commands, read_by = compile_commands(), dependencies()
    keys = {source: key_of(source, setting, commands, read_by) for source in files}
    unchecked = [source for source in files if keys[source] is None or not (CACHE / keys[source]).exists()]
    with_findings = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, clean in zip(unchecked, pool.map(functools.partial(check, tool), unchecked)):
            if not clean:
                with_findings.append(source)
            elif keys[source] is not None:
                CACHE.mkdir(parents=True, exist_ok=True)
                (CACHE / keys[source]).touch()
    known = len(files) - len(unchecked)
    print(f"clang-tidy: {len(unchecked)} files looked at, {known} known to be clean, {len(with_findings)} with findings")
    sys.exit(1 if with_findings else 0)


if __name__ == "__main__":
    main()
