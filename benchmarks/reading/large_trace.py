#!/usr/bin/env python3
"""How long the reading commands take on a trace of very many ranks, and how much memory.

usage: large_trace.py [--ranks 1024] [--collectives 100000] [--keep DIR] [--build build]

Writes the trace with the product's writer (three events a collective, a step every 100), level order: about
1.5 MB a rank. With --keep the trace stays there, or is taken from there if it is there already. The page cache is warm.
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path


def run(argv, good=(0,)):
    """Seconds, megabytes at most, and the output."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(a) for a in argv], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
        if process.returncode not in good:
            raise SystemExit(f"{argv}: exit {process.returncode}")
        out.seek(0)
        return seconds, usage.ru_maxrss / 1024, out.read().decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--collectives", type=int, default=100_000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--build", type=Path, default=Path("build-release"))
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="deja-bench-"))
    trace = args.keep or folder / "large.deja"
    deja, large = args.build / "bin" / "deja", args.build / "bin" / "large_trace"
    try:
        if not trace.exists():
            seconds, memory, _ = run([large, "write", trace, args.ranks, args.collectives])
            print(f"written in {seconds:.0f} s, {memory:.0f} MB")
        size = sum(f.stat().st_size for f in trace.rglob("*.deja") if f.is_file())
        last = args.ranks - 1
        print(f"{args.ranks} ranks x {args.collectives} collectives, {size / 1e9:.2f} GB\n")
        print("| command | seconds | memory |\n| --- | --- | --- |")
        for name, argv in (
                ("info", ["info", trace]), ("info --json", ["info", trace, "--json"]),
                ("show --last 20", ["show", trace, "--rank", last, "--last", 20]),
                ("show --seq 50000", ["show", trace, "--rank", last, "--seq", args.collectives // 2]),
                ("show, all of a rank", ["show", trace, "--rank", last]),
                ("verify", ["verify", trace]),
                ("pack --zstd-level 3", ["pack", trace, "--zstd-level", 3, "--out", folder / "small.zip"])):
            seconds, memory, _ = run([deja, *argv])
            print(f"| {name} | {seconds:.2f} | {memory:.0f} MB |", flush=True)
        seek = json.loads(run([large, "seek", trace, 300])[2])
        print(f"\none operation of one rank, from nothing open: median {seek['median_ms']} ms, "
              f"99 % {seek['p99_ms']} ms, at most {seek['max_ms']} ms")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
