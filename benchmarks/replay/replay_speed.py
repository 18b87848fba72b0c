#!/usr/bin/env python3
"""How long a replay takes, compared with the recorded run: the digits example, mode by mode.

    benchmarks/replay/replay_speed.py [--build build] [--repeat 5] [--steps 600] [--modes ddp,hybrid] [--json]

Each round runs, one after the other so that drifts of the machine hit all alike: the job without Deja, the job
recorded at level full, every rank replayed alone, and all ranks replayed side by side. Seeded, so that every
round computes the same. Wall-clock medians; `alone` is the slowest rank's. A replay should take no longer than the
recorded run: exits 1 when the median of `alone` or `side by side` does.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("plain", "recorded", "alone", "side by side")


def timed(argv):
    started = time.monotonic()
    run = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    seconds = time.monotonic() - started
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, argv))}\nexit code {run.returncode}\n{run.stdout.decode(errors='replace')}")
    return seconds


def one_round(deja, program, ranks, trace):
    times = {"plain": timed([deja, "launch", "-n", ranks, "--", *program])}
    shutil.rmtree(trace, ignore_errors=True)
    times["recorded"] = timed([deja, "record", "--loopback", "-n", ranks, "--out", trace, "--", *program])
    times["alone"] = max(timed([deja, "replay", trace, "--rank", rank]) for rank in range(ranks))
    times["side by side"] = timed([deja, "replay", trace, "--all"])
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--modes", default="ddp,sharded,pipeline,hybrid")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    deja = args.build / "bin" / "deja"
    train = args.build / "examples" / "digits" / "digits_train"

    results = {}
    with tempfile.TemporaryDirectory(prefix="deja-bench-") as folder:
        for mode in args.modes.split(","):
            program = [train, f"--mode={mode}", f"--steps={args.steps}", "--seed=1"]
            rounds = [one_round(deja, program, args.ranks, Path(folder) / "run.deja") for _ in range(args.repeat)]
            results[mode] = {kind: statistics.median(r[kind] for r in rounds) for kind in KINDS}

    slower = [f"{mode}, {kind}" for mode, times in results.items() for kind in ("alone", "side by side")
              if times[kind] > times["recorded"]]
    if args.json:
        print(json.dumps({"seconds": results, "ranks": args.ranks, "steps": args.steps, "repeat": args.repeat,
                          "cpus": os.cpu_count(), "slower_than_recorded": slower}))
    else:
        print(f"{args.ranks} ranks, {args.steps} steps, medians of {args.repeat} rounds, {os.cpu_count()} CPUs")
        print(f"{'mode':10}" + "".join(f"{kind:>14}" for kind in KINDS) + f"{'alone/rec.':>12}{'side/rec.':>12}")
        for mode, times in results.items():
            print(f"{mode:10}" + "".join(f"{times[kind]:12.2f} s" for kind in KINDS) +
                  f"{times['alone'] / times['recorded']:12.2f}{times['side by side'] / times['recorded']:12.2f}")
        for where in slower:
            print(f"slower than the recorded run: {where}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
