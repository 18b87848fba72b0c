#!/usr/bin/env python3
"""What recording costs a step of a data-parallel job: two models train in turns within one process, one unrecorded.

    benchmarks/recording/step_overhead.py --python PYTHON [--runs 8] [--levels order digest] [--build build]

Whole runs (record_overhead.py) differ by several percent from one to the next. Turns of two steps within one process
differ by Deja alone: its side of PyTorch, its events, digests of tensors, states of generators. They do not tell what
both models pay alike: the start, hooks of the C library, the background thread.

Prints, by level and clock, the milliseconds of a step without Deja and the difference. The main thread's processor time
differs little between runs; the elapsed time also has what the threads of both ranks wait for. A run's difference is
the mean over its turns without the tenth at either end; the table has the mean over the runs and its standard error.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOB = Path(__file__).with_name("ddp_turns.py")
LEVELS = ["order", "digest"]
CLOCKS = ["elapsed", "main thread"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--runs", type=int, default=8, help="of each level, which take turns")
    parser.add_argument("--levels", nargs="+", default=LEVELS, choices=LEVELS)
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build")))
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return parser.parse_args()


def trimmed_mean(numbers):
    """Without the tenth at either end."""
    cut = len(numbers) // 10
    return statistics.mean(sorted(numbers)[cut:len(numbers) - cut])


def one_run(deja, python, level, folder):
    """Milliseconds of a step (without Deja, difference), by each of CLOCKS."""
    command = [deja, "record", "--loopback", "-n", "2", "--level", level, "--force", "--out", Path(folder) / "run.deja",
               "--", python, JOB]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    times = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    found = []
    for recorded, real in zip(zip(*times["recorded"]), zip(*times["real"])):
        found.append((trimmed_mean(real), trimmed_mean([one - other for one, other in zip(recorded, real)])))
    return found


def main():
    options = parse()
    deja = options.build.resolve() / "bin" / "deja"
    runs = {level: [] for level in options.levels}
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder:
        for _ in range(options.runs):
            for level, found in runs.items():
                found.append(one_run(deja, options.python, level, folder))
    if options.json:
        print(json.dumps(runs, indent=2))
        return
    print("| level | clock | runs | step without Deja, ms | difference, ms | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for level, found in runs.items():
        for clock, numbers in zip(CLOCKS, zip(*found)):
            real, differences = zip(*numbers)
            error = statistics.stdev(differences) / math.sqrt(len(found)) if len(found) > 1 else math.nan
            base, more = statistics.mean(real), statistics.mean(differences)
            print(f"| {level} | {clock} | {len(found)} | {base:.2f} | {more:.3f} ± {error:.3f} | "
                  f"{1 + more / base:.3f} ± {error / base:.3f} |")


if __name__ == "__main__":
    main()
