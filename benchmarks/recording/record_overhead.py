#!/usr/bin/env python3
"""What recording costs: whole-process times of a program without Deja, at each level, and with a window.

    benchmarks/recording/record_overhead.py [--runs 11] [--ranks 4] [--build build] [--variants NAME…] [-- PROGRAM ARGS…]

The variants take turns within each round. Each round begins with another one, and every other round goes backwards:
what else the machine does hits all of them. Before each run the machine writes what earlier runs left to be written.
Prints a table of medians, the quartiles, and the ratio to the runs without Deja: the median of the rounds' ratios. In
brackets is its 95 % interval; a target within it is neither kept nor missed. The table has the whole process's time,
the processor time of all ranks, which a busy machine disturbs less, and their page faults in thousands. Default
program: the digits example with a fixed seed. A recorded run ends when its trace is complete.

With --replays each recording is replayed in its round, rank after rank. The row "VARIANT, replayed" has the slowest
rank's time, and the processor time of all ranks.
"""
import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Options of each variant.
VARIANTS = {"order": ["--level", "order"], "digest": ["--level", "digest"], "full": ["--level", "full"],
            "digest, no evidence": ["--level", "digest", "--no-evidence"],
            "full, no evidence": ["--level", "full", "--no-evidence"],
            "window": ["--level", "full", "--keep-steps", "5"]}
# The same with the order of the threads' locks.
VARIANTS |= {f"{name}+threads": [*words, "--threads", "order"] for name, words in VARIANTS.items()}
TARGETS = {"order": 1.03, "digest": 1.05, "full": 1.15}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=11, help="rounds; each runs every variant once")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--launched", action="store_true", help="the program starts its ranks itself, as torchrun does")
    parser.add_argument("--variants", nargs="+", default=["order", "digest", "full", "window"], choices=VARIANTS,
                        help="which take turns with the runs without Deja; PyTorch's have evidence for deja check, or not")
    parser.add_argument("--replays", action="store_true", help="replay each rank of each recording, too")
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("DEJA_BUILD_DIR", ROOT / "build")))
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("program", nargs="*", help="after --: what to run instead of the example")
    return parser.parse_args()


def timed(argv, folder, tries=1):
    """Elapsed and processor seconds, and page faults, of the command and all that it started.

    tries: a run that fails is made again.
    """
    # Deja's Python is compiled once, as pip has compiled the program's packages.
    left_out = ("DEJA_", "PYTHONDONTWRITEBYTECODE")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    os.sync()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        failure = f"{' '.join(map(str, argv))}: exit code {done.returncode}\n{done.stderr.decode()}"
        if tries == 1:
            sys.exit(failure)
        print(failure, file=sys.stderr)
        return timed(argv, folder, tries - 1)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, after.ru_minflt - before.ru_minflt


def replayed(deja, trace, ranks, folder):
    """Elapsed seconds of the slowest rank's replay, and processor seconds and page faults of all of them."""
    each = [timed([deja, "replay", trace, "--rank", str(rank)], folder) for rank in range(ranks)]
    elapsed, used, faults = zip(*each)
    return max(elapsed), sum(used), sum(faults)


def ratio(variant, base):
    """Median of the rounds' ratios, and the ends of its 95 % interval.

    The interval is that of order statistics, which assumes no distribution: the number of ratios below the true median
    is binomial. Below six rounds no interval has 95 %, and it spans all ratios.
    """
    each = sorted(t / b for t, b in zip(variant, base))
    count, left_out = len(each), 0
    while sum(math.comb(count, i) for i in range(left_out + 2)) / 2 ** (count - 1) <= 0.05:
        left_out += 1
    return statistics.median(each), each[left_out], each[-1 - left_out]


def shown(each):
    middle, low, high = each
    return f"{middle:.3f} ({low:.3f} … {high:.3f})"


def recorded(options, deja, program, folder, sizes, variant):
    """What timed() gives, by row, of one recording and of its replay; sizes gets that of the trace."""
    trace = Path(folder) / "run.deja"
    launched = [] if options.launched else ["--loopback", "-n", str(options.ranks)]
    row = {variant: timed([deja, "record", *launched, *VARIANTS[variant], "--out", trace, "--", *program], folder)}
    sizes[variant] = sum(p.stat().st_size for p in trace.rglob("*") if p.is_file())
    if options.replays:
        row[f"{variant}, replayed"] = replayed(deja, trace, options.ranks, folder)
    shutil.rmtree(trace)
    return row


def turns(variants, number):
    """The variants in the order of the round with that number."""
    first = number // 2 % len(variants)
    order = variants[first:] + variants[:first]
    return order[::-1] if number % 2 else order


def one_round(options, deja, program, folder, sizes, number):
    """What timed() gives, by row; sizes gets those of the traces."""
    row = {}
    for variant in turns(["without", *options.variants], number):
        if variant == "without":
            # torch 2.15 ends some of these jobs with "terminate called without an active exception", without Deja.
            launcher = [] if options.launched else [deja, "launch", "-n", str(options.ranks), "--"]
            row[variant] = timed([*launcher, *program], folder, tries=3)
        else:
            row.update(recorded(options, deja, program, folder, sizes, variant))
    return row


def main():
    options = parse()
    deja = options.build.resolve() / "bin" / "deja"
    program = options.program or [options.build.resolve() / "examples" / "digits" / "digits_train", "--seed=1"]
    sizes = {}
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder:
        rounds = [one_round(options, deja, program, folder, sizes, i) for i in range(options.runs + 1)]
    names = list(rounds.pop(0))  # this round warms the caches, and has the rows in their order
    times, processor, faults = ({name: [row[name][i] for row in rounds] for name in names} for i in range(3))
    ratios, used_ratios = ({name: ratio(each[name], each["without"]) for name in names} for each in (times, processor))
    if options.json:
        print(json.dumps({"seconds": times, "processor_seconds": processor, "page_faults": faults, "ratios": ratios,
                          "processor_ratios": used_ratios, "trace_bytes": sizes}, indent=2))
        return
    print(f"{options.ranks} ranks, {options.runs} alternating runs: {' '.join(map(str, program))}\n")
    print("| variant | median s | quartiles | ratio | target | processor s | ratio | faults | trace MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for variant, seconds in times.items():
        low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3
        target = f"< {TARGETS[variant]:.2f}" if variant in TARGETS else ""
        size = f"{sizes[variant] / 1e6:.1f}" if variant in sizes else ""
        print(f"| {variant} | {middle:.3f} | {low:.3f} … {high:.3f} | {shown(ratios[variant])} | {target} | "
              f"{statistics.median(processor[variant]):.3f} | {shown(used_ratios[variant])} | "
              f"{statistics.median(faults[variant]) / 1000:.0f} | {size} |")


if __name__ == "__main__":
    main()
