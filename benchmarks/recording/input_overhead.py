#!/usr/bin/env python3
"""What recording costs a rank that reads clocks and files: the same program without Deja and under `deja record`.

    benchmarks/recording/input_overhead.py [--runs 7] [--calls 1000000] [--inputs digest] [--build build-release]

The two take turns. Prints the medians of the processor time per call, of the thread that calls, and their ratio.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--calls", type=int, default=1000000)
    parser.add_argument("--inputs", default="digest", choices=("off", "digest", "full"))
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build-release")))
    options = parser.parse_args()
    program = options.build.resolve() / "bin" / "input_reader"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DEJA_")}
    times = {"without": [], "recorded": []}
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder:
        data = Path(folder) / "data"
        data.write_bytes(os.urandom(4 << 20))
        large = Path(folder) / "large"
        large.write_bytes(os.urandom(64 << 20) * 8)
        trace = Path(folder) / "run.deja"
        record = [options.build.resolve() / "bin" / "deja", "record", "--single", "--inputs", options.inputs, "--out", trace, "--"]
        for _ in range(options.runs):
            for variant, front in (("without", []), ("recorded", record)):
                run = subprocess.run([*front, program, data, large, str(options.calls)], env=environment, check=True,
                                     capture_output=True, text=True, cwd=folder)
                times[variant].append([float(word) for word in run.stdout.split()[:3]])
                if trace.exists():
                    size = sum(p.stat().st_size for p in trace.rglob("*") if p.is_file())
                    shutil.rmtree(trace)
    print(f"{options.calls} calls each, {options.runs} alternating runs; trace of {size / 1e6:.1f} MB\n")
    print("| call | without | recorded | ratio |\n| --- | --- | --- | --- |")
    rows = [("clock reading", 0), ("read of 4 KiB, over and over", 1), ("read of 4 KiB, the first time", 2)]
    sums = {variant: [run[0] + run[1] for run in runs] for variant, runs in times.items()}
    for name, at in rows:
        a, b = (statistics.median(run[at] for run in times[v]) for v in times)
        print(f"| {name} | {a:.1f} ns | {b:.1f} ns | {b / a:.2f} |")
    a, b = (statistics.median(sums[v]) for v in times)
    print(f"| the first two | {a:.1f} ns | {b:.1f} ns | {b / a:.2f} |")


if __name__ == "__main__":
    main()
