#!/usr/bin/env python3
"""What differences to the checkpoint before save: the same training, its checkpoints with and without them.

    benchmarks/checkpoints/checkpoint_deltas.py [--build build] [--python python3] [--every 10] [--checkpoints 10] [--memory 256]

The digits example (one rank, float32, AdamW) and a small GPT (training_data.py; float32 parameters and moments, and a copy of the parameters in
bfloat16). Recorded at level digest, so that nothing but checkpoints is kept. Size: of the files of payloads, against the bytes in the checkpoints; stall: how long the program waits
for a checkpoint by the recording's times (checkpoint_stall.py), and the processor time that the whole run took. Needs PyTorch and NumPy for the GPT.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

from checkpoint_stall import stalls_of

ROOT = Path(__file__).resolve().parents[2]


def record(args, trace, memory, ranks, program):
    argv = [args.build / "bin" / "deja", "record", *ranks, "--level", "digest", "--checkpoint-every", args.every, "--delta-memory",
            memory, "--out", trace, "--", *program]
    env = {**os.environ, "JOB_STEPS": str(steps_of(args)),
           "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'benchmarks' / 'codec'}"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([str(a) for a in argv], env=env, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(run.stdout + run.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def steps_of(args):
    return args.every * (args.checkpoints + 1)


def report(args, name, ranks, program):
    deja = args.build / "bin" / "deja"
    sizes = {}
    for memory in (0, args.memory << 20):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "run.deja"
            used = record(args, trace, memory, ranks, program)
            info = json.loads(subprocess.run([deja, "info", "--json", trace], check=True, capture_output=True, text=True).stdout)
            checkpoints = info["ranks"][0]["checkpoints"]
            raw = sum(c["bytes"] for c in checkpoints)
            sizes[memory] = sum(f.stat().st_size for f in trace.rglob("payloads*.deja"))
            stalls, _ = stalls_of(deja, trace, 0)
            print(f"{name}, {'differences' if memory else 'each on its own'}: {len(checkpoints)} checkpoints of {raw / len(checkpoints) / 1e6:.2f} MB, kept in "
                  f"{sizes[memory] / 1e6:.2f} MB ({raw / sizes[memory]:.2f}x); stall {statistics.median(stalls) / 1e6:.2f} ms "
                  f"(longest {max(stalls) / 1e6:.2f} ms), processor {used:.1f} s", flush=True)
    print(f"{name}: with differences {sizes[args.memory << 20] / sizes[0]:.3f} of the size")


def options(description):
    """Of both benchmarks of what checkpoints take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--checkpoints", type=int, default=10)
    parser.add_argument("--memory", type=int, default=256, help="MiB of --delta-memory")
    return parser.parse_args()


def main():
    args = options(__doc__)
    digits = [args.build / "examples" / "digits" / "digits_train", "--batch=16", f"--steps={steps_of(args)}", "--log-every=100000"]
    report(args, "digits", ["--loopback", "-n", 1], digits)
    report(args, "GPT", ["--single"], [args.python, ROOT / "benchmarks" / "checkpoints" / "checkpoint_deltas_job.py"])


if __name__ == "__main__":
    main()
