#!/usr/bin/env python3
"""What predictions save of a data-parallel job of PyTorch: the same recording, packed with and without `--predict`.

    benchmarks/checkpoints/predicted_checkpoints.py [--build build] [--python python3] [--every 10] [--checkpoints 10]

A small GPT (predicted_checkpoints_job.py), two ranks over gloo. What a bundle has without checkpoints is not measured but worked out: `size` is what the
bundle of a recording at level digest has, where nothing but checkpoints is kept, and with predictions that, less what the bundle of the whole recording shrinks by.
"""
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from checkpoint_deltas import options

ROOT = Path(__file__).resolve().parents[2]


def command(args, *argv, **env):
    run = subprocess.run([str(a) for a in (args.build / "bin" / "deja", *argv)], env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(run.stdout + run.stderr)
    return run.stdout


def record(args, trace, level):
    env = {"JOB_STEPS": str(args.every * args.checkpoints + 3), "JOB_EVERY": str(args.every),
           "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'benchmarks' / 'codec'}"}
    out = command(args, "record", "--loopback", "-n", 2, "--level", level, "--delta-memory", args.memory << 20, "--out", trace, "--", args.python,
                  ROOT / "benchmarks" / "checkpoints" / "predicted_checkpoints_job.py", **env)
    return next(json.loads(line[line.index("{"):]) for line in out.splitlines() if "{" in line)


def pack(args, trace, *options):
    bundle = trace.with_suffix(".zip")
    bundle.unlink(missing_ok=True)
    begin = time.perf_counter()
    command(args, "pack", trace, "--out", bundle, *options)
    packed = time.perf_counter()
    command(args, "verify", bundle)
    return bundle, packed - begin, time.perf_counter() - packed


def main():
    args = options(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        job = {}
        sizes = {}
        for level in ("digest", "full"):
            trace = Path(folder) / f"{level}.deja"
            job[level] = record(args, trace, level)
            bundle, packed, verified = pack(args, trace, "--zstd-level", 3)
            sizes[level] = bundle.stat().st_size
        print(f"{job['full']['elements']} elements in {job['full']['tensors']} tensors; a step {job['full']['step'] * 1e3:.1f} ms, "
              f"telling what it did {job['full']['telling'] * 1e6:.0f} us of the thread's processor time")
        info = json.loads(command(args, "info", "--json", Path(folder) / "digest.deja"))["ranks"][0]["checkpoints"]
        print(f"{len(info)} checkpoints of {info[0]['bytes'] / 1e6:.2f} MB: in {sizes['digest'] / 1e6:.2f} MB")
        print(f"the whole bundle {sizes['full'] / 1e6:.2f} MB, packed in {packed:.1f} s, verified in {verified:.1f} s")
        bundle, packed, verified = pack(args, trace, "--predict")
        saved = sizes["full"] - bundle.stat().st_size
        print(f"with predictions {bundle.stat().st_size / 1e6:.2f} MB, packed in {packed:.1f} s, verified in {verified:.1f} s: "
              f"the checkpoints in {(sizes['digest'] - saved) / 1e6:.2f} MB")
        print(json.loads(command(args, "info", "--json", bundle))["ranks"][0]["predicted"])


if __name__ == "__main__":
    main()
