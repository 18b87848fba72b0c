#!/usr/bin/env python3
"""How long the commands take on a trace of very many operations, and how much memory.

usage: long_trace.py [--operations 1000000] [--keep DIR] [--build build]

Two ranks of tests/e2e/apps/record/stepper.cc, level full: all-reduces of four floats that are never the same twice, two
in a step. With --keep the trace stays there, or is taken from there if it is there already.
"""
import argparse
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path


def run(argv):
    """Seconds, and megabytes at most. What the command prints is not read: a child counts with the memory that its
    parent has."""
    begin = time.monotonic()
    process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 3):
        raise SystemExit(f"{argv}: exit {process.returncode}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--build", type=Path, default=Path("build"))
    args = parser.parse_args()
    build = args.build.resolve()
    deja, stepper = build / "bin" / "deja", build / "tests" / "apps" / "stepper"
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder:
        trace = args.keep or Path(folder) / "long.deja"
        program = [stepper, f"--steps={args.operations // 2}", "--count=4"]
        print("| command | seconds | memory |\n| --- | --- | --- |")
        print("| the program without Deja | {:.1f} | {:.0f} MB |".format(*run([deja, "launch", "-n", 2, "--", *program])))
        if not trace.exists():
            seconds, memory = run([deja, "record", "--loopback", "-n", 2, "--level", "full", "--out", trace, "--", *program])
            print(f"| record | {seconds:.1f} | {memory:.0f} MB |", flush=True)
        torn = Path(folder) / "torn.deja"
        shutil.copytree(trace, torn)
        for file in torn.glob("rank-*/events.deja"):  # as a process leaves it that was killed
            with open(file, "r+b") as events:
                events.truncate(file.stat().st_size * 9 // 10)
        for name, argv in (
                ("info", ["info", trace]), ("show, all of a rank", ["show", trace, "--rank", 1]),
                ("verify", ["verify", trace]), ("diff", ["diff", trace, trace, "--rank", 0]),
                ("pack", ["pack", trace, "--out", Path(folder) / "a.zip"]),
                ("pack --zstd-level 3", ["pack", trace, "--zstd-level", 3, "--out", Path(folder) / "b.zip"]),
                ("replay --rank 1", ["replay", trace, "--rank", 1]),
                ("replay --rank 1, without index", ["replay", "--trust", torn, "--rank", 1]),
                ("verify, without index", ["verify", torn]), ("recover", ["recover", torn])):
            seconds, memory = run([deja, *argv])
            print(f"| {name} | {seconds:.1f} | {memory:.0f} MB |", flush=True)
        size = subprocess.run(["du", "-sm", trace], capture_output=True, text=True, check=True).stdout.split()[0]
        print(f"\n{args.operations} operations of each rank, {size} MB")


if __name__ == "__main__":
    main()
