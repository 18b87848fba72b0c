#!/usr/bin/env python3
"""What one event costs its thread, Deja's and LTTng-UST's, in turns.

    benchmarks/event_cost.py [--runs 5] [--build build-release]

LTTng's part needs lttng-tools, a session daemon that may be started here, and a build that found lttng-ust.
"""
import argparse
import collections
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SESSION = f"deja-bench-{os.getpid()}"


def lttng(*words):
    subprocess.run(["lttng", "--no-sessiond", *words], check=True, capture_output=True)


def run_lttng(program, folder):
    """The program in a session of its own; its output."""
    lttng("create", SESSION, f"--output={folder}")
    try:
        lttng("enable-channel", "--userspace", f"--session={SESSION}", "--subbuf-size=1M", "--num-subbuf=8", "bench")
        lttng("enable-event", "--userspace", f"--session={SESSION}", "--channel=bench", "deja_bench:*")
        lttng("start", SESSION)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout
    finally:
        lttng("destroy", SESSION)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--build", type=Path, default=ROOT / "build-release")
    options = parser.parse_args()
    ours = options.build.resolve() / "bin" / "event_cost"
    theirs = options.build.resolve() / "bin" / "event_cost_lttng"
    figures = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder:
        peer = theirs.is_file() and shutil.which("lttng") is not None
        daemon = None
        if peer:
            daemon = subprocess.Popen(["lttng-sessiond", "--quiet", "--no-kernel"])
            subprocess.run(["sleep", "2"], check=True)
        try:
            for run in range(options.runs):
                text = subprocess.run([ours], check=True, capture_output=True, text=True).stdout
                if peer:
                    text += run_lttng(theirs, f"{folder}/{run}")
                for line in text.splitlines():
                    name, state, ns, _ = line.split()
                    figures[name, state].append(float(ns))
        finally:
            if daemon is not None:
                daemon.terminate()
                daemon.wait()
    print("| event | median |\n| --- | --- |")
    for (name, state), values in figures.items():
        print(f"| {name}, {state} | {statistics.median(values):.0f} ns |")


if __name__ == "__main__":
    main()
