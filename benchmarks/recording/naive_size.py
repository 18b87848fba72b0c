#!/usr/bin/env python3
"""The size of a recording beside a plain dump of what it holds: the results, snapshots and checkpoints of every rank.

  naive_size.py RUN.deja [--deja build/bin/deja]

What is dumped is each tensor of each rank as it is, with neither names nor times; the recording is all of its files,
events, stacks and inputs included.
"""
import argparse
import json
import subprocess
from pathlib import Path

SIZES = {"int8": 1, "uint8": 1, "bytes": 1, "float8e4m3": 1, "float8e5m2": 1, "float16": 2, "bfloat16": 2, "int32": 4,
         "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8}


def tensor_bytes(event):
    tensors = event.get("outputs", [])
    if event["kind"] == "snapshot":
        tensors = [event["tensor"]]
    return sum(tensor["count"] * SIZES[tensor["dtype"]] for tensor in tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--deja", default=Path(__file__).resolve().parents[2] / "build" / "bin" / "deja")
    options = parser.parse_args()

    def deja(*arguments):
        return subprocess.run([options.deja, *arguments], check=True, capture_output=True, text=True).stdout
    ranks = json.loads(deja("info", options.run, "--json"))["ranks"]
    dump = 0
    for rank in ranks:
        lines = deja("show", options.run, "--json", "--rank", str(rank["rank"]), "--kind", "results,snapshot").splitlines()
        dump += sum(tensor_bytes(json.loads(line)) for line in lines)
    recording = sum(path.stat().st_size for path in options.run.rglob("*") if path.is_file())
    print(f"dump {dump / 1e6:.2f} MB, recording {recording / 1e6:.2f} MB: {recording / dump:.3f} of it")


if __name__ == "__main__":
    main()
