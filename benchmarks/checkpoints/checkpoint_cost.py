#!/usr/bin/env python3
"""What checkpoints of a DDP job on CPUs cost: Deja's beside torch.save and torch.distributed.checkpoint, of the same state in the same run.

    benchmarks/checkpoints/checkpoint_cost.py [--build build] [--python python3] [--steps 500] [--every 100] [--ranks 2] [--runs 3]

Stall: how long the training stands still for one checkpoint (median), and its share of that many steps. Size: of Deja, how much larger the trace of the job is than that
of the same job without checkpoints, by the number of checkpoints; of the others, their files.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def size_of(path):
    return path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def run_job(args, folder, with_checkpoints):
    folder.mkdir()
    env = {**os.environ, "JOB_STEPS": str(args.steps), "JOB_EVERY": str(args.every), "JOB_FOLDER": str(folder), "PYTHONPATH": str(ROOT / "python"),
           "JOB_DEJA": "1" if with_checkpoints else ""}
    trace = folder / "run.deja"
    argv = [args.build / "bin" / "deja", "record", "--loopback", "-n", args.ranks, "--level", "digest", "--out", trace, "--", args.python,
            ROOT / "benchmarks" / "checkpoints" / "checkpoint_job.py"]
    run = subprocess.run([str(a) for a in argv], env=env, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(run.stdout + run.stderr)
    said = json.loads(next(line for line in run.stdout.splitlines() if line.startswith("{")))
    return said, size_of(trace)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--python", default="/usr/bin/python3")
    for name, default in (("steps", 500), ("every", 100), ("ranks", 2), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _, plain = run_job(args, folder / "plain", False)
        runs = [run_job(args, folder / f"run{i}", True) for i in range(args.runs)]
        count = len(list((folder / "run0").glob("step-*.pt")))
        sizes = {"torch.save": size_of(folder / "run0" / f"step-{args.every}.pt"),
                 "dcp": size_of(folder / "run0" / f"step-{args.every}.dcp"),
                 "deja": (statistics.median(size for _, size in runs) - plain) / count}
        step = statistics.median(said["step"] for said, _ in runs)
        print(f"a step: {step * 1000:.1f} ms, {count} checkpoints a run")
        for name, size in sizes.items():
            stall = statistics.median(said["stalls"][name] for said, _ in runs)
            print(f"{name:12} stall {stall * 1000:7.1f} ms  {stall / step / args.every:6.2%} of {args.every} steps  {size / 1e6:6.1f} MB")


if __name__ == "__main__":
    main()
