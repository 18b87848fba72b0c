#!/usr/bin/env python3
"""What a whole collective costs its thread at level order (enter, results and leave, with its stack), beside tracepoints of
LTTng-UST with the same fields but for the stack, in turns; both less the call itself.

    benchmarks/events/collective_cost.py [--runs 5] [--build build-release]
"""
import collections
import statistics
import subprocess
import tempfile

import lttng_session


def main():
    options = lttng_session.options(__doc__.splitlines()[0])
    build = options.bin
    program, theirs = build / "collective_cost", build / "collective_cost_lttng"
    figures = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder, lttng_session.daemon(theirs) as peer:
        for run in range(options.runs):
            trace = f"{folder}/{run}.deja"
            record = [build / "deja", "record", "--loopback", "-n", "1", "--level", "order", "--out", trace, "--"]
            texts = [subprocess.run([*start, program, name], check=True, capture_output=True, text=True).stdout
                     for start, name in (([], "alone"), (record, "deja"))]
            if peer:
                texts.append(lttng_session.run_lttng(theirs, f"{folder}/{run}", "lttng-ust"))
            took = {}
            for line in "".join(texts).splitlines():
                name, state, ns, _ = line.split()
                took[name, state] = float(ns)
            for (name, state), ns in took.items():
                figures[name, state].append(ns if name == "alone" else ns - took["alone", state])
    print("| collective | least | median |\n| --- | --- | --- |")
    for (name, state), values in figures.items():
        print(f"| {name}, {state} | {min(values):.0f} ns | {statistics.median(values):.0f} ns |")


if __name__ == "__main__":
    main()
