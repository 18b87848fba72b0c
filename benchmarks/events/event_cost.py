#!/usr/bin/env python3
"""What one event costs its thread, Deja's and LTTng-UST's, in turns.

    benchmarks/events/event_cost.py [--runs 5] [--build build-release]

LTTng's part needs lttng-tools, a session daemon that may be started here, and a build that found lttng-ust.
"""
import collections
import statistics
import subprocess
import tempfile

import lttng_session


def main():
    options = lttng_session.options(__doc__.splitlines()[0])
    ours, theirs = options.bin / "event_cost", options.bin / "event_cost_lttng"
    figures = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder:
        with lttng_session.daemon(theirs) as peer:
            for run in range(options.runs):
                text = subprocess.run([ours], check=True, capture_output=True, text=True).stdout
                if peer:
                    text += lttng_session.run_lttng(theirs, f"{folder}/{run}")
                for line in text.splitlines():
                    name, state, ns, _ = line.split()
                    figures[name, state].append(float(ns))
    print("| event | median |\n| --- | --- |")
    for (name, state), values in figures.items():
        print(f"| {name}, {state} | {statistics.median(values):.0f} ns |")


if __name__ == "__main__":
    main()
