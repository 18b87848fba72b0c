#!/usr/bin/env python3
"""What taking a lock costs, without Deja, recorded with and without an order, replayed, and under rr where that runs.

    benchmarks/events/lock_cost.py [--runs 5] [--count 1000000] [--build build-release]
"""
import argparse
import collections
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path


def figures_of(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    lines = [line.split() for line in done.stdout.splitlines() if len(line.split()) == 2]
    return {name: float(ns) for name, ns in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--count", type=int, default=1000000)
    parser.add_argument("--build", default="build-release")
    options = parser.parse_args()
    bin_folder = Path(options.build).resolve()
    program = [bin_folder / "benchmarks" / "lock_cost", options.count]
    deja = bin_folder / "bin" / "deja"
    figures = collections.defaultdict(lambda: collections.defaultdict(list))
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder:
        for run in range(options.runs):
            trace = f"{folder}/{run}.deja"
            record = [deja, "record", "--single", "--threads"]
            variants = {"without Deja": program,
                        "recorded, off": [*record, "off", "--out", f"{folder}/off-{run}.deja", "--", *program],
                        "recorded, order": [*record, "order", "--out", trace, "--", *program],
                        # Told times are the recorded ones.
                        "replayed": [deja, "replay", "--clock", "live", trace, "--rank", 0]}
            if shutil.which("rr"):
                variants["rr record"] = ["rr", "record", "-o", f"{folder}/rr-{run}", *program]
            for name, command in variants.items():
                found = figures_of(command)
                if found is None:
                    print(f"{name}: does not run here")
                for what, ns in (found or {}).items():
                    figures[what][name].append(ns)
    names = list(next(iter(figures.values())))
    print("| ns for each acquisition, median |", " | ".join(names), "|")
    print("| --- |" + " --- |" * len(names))
    for what, by_variant in figures.items():
        print(f"| {what} |", " | ".join(f"{statistics.median(by_variant[name]):.0f}" for name in names), "|")


if __name__ == "__main__":
    main()
