#!/usr/bin/env python3
"""How long the training of the digits example stands still for a checkpoint.

    benchmarks/checkpoints/checkpoint_stall.py [--build build] [--steps 2000] [--every 100] [--ranks 2]

From the recording itself: a step's event is written when the program calls deja_step, the checkpoint's when its last item is in the buffer. Both are on the program's thread,
so the time between them is what the program waits; its share is of that many steps of median length.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def stalls_of(deja, trace, rank):
    """Stalls and lengths of steps, in ns."""
    argv = [deja, "show", trace, "--rank", rank, "--json", "--kind", "step,checkpoint"]
    shown = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=True).stdout
    steps, stalls = [], []
    for event in map(json.loads, shown.splitlines()):
        if event["kind"] == "step":
            steps.append(event["time_ns"])
        else:
            stalls.append(event["time_ns"] - steps[-1])
    return stalls, [b - a for a, b in zip(steps, steps[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    deja = args.build / "bin" / "deja"
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "run.deja"
        argv = [deja, "record", "--loopback", "-n", args.ranks, "--checkpoint-every", args.every, "--out", trace, "--",
                args.build / "examples" / "digits" / "digits_train", "--batch=16", f"--steps={args.steps}", "--log-every=100000"]
        subprocess.run([str(a) for a in argv], check=True, capture_output=True)
        for rank in range(args.ranks):
            stalls, lengths = stalls_of(deja, trace, rank)
            stall, step = statistics.median(stalls), statistics.median(lengths)
            print(f"rank {rank}: {len(stalls)} checkpoints, {stall / 1e3:.0f} us each (longest {max(stalls) / 1e3:.0f} us), a step {step / 1e3:.0f} us: "
                  f"{stall / (args.every * step) * 100:.4f} %")


if __name__ == "__main__":
    main()
