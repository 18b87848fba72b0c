#!/usr/bin/env python3
"""All-reduce of the loopback library against OpenMPI's MPI_Allreduce, on this machine, in turns.

    run.py [--ranks N] [--rounds K] [--build DIR]

Prints a table; exits with 1 when the loopback library is more than twice as slow at 64 MiB.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path


def parse(text):
    return {int(size): float(micros) for size, micros in (line.split() for line in text.splitlines())}


def run_mpi(program, ranks):
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), str(program)]
    return parse(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def run_nccl(program, ranks):
    comm_id = f"127.0.0.1:{os.getpid()}-{time.monotonic_ns()}"
    processes = [subprocess.Popen([str(program)], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "NCCL_COMM_ID": comm_id})
                 for rank in range(ranks)]
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit("a rank failed")
    return parse(outputs[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build-release")
    options = parser.parse_args()
    programs = options.build / "bin"
    mpi, nccl = [], []
    for _ in range(options.rounds):
        mpi.append(run_mpi(programs / "allreduce_mpi", options.ranks))
        nccl.append(run_nccl(programs / "allreduce_nccl", options.ranks))
    print(f"{options.ranks} ranks, {os.cpu_count()} processors, float32 sum, median of {options.rounds} rounds\n")
    print(f"{'bytes':>10} {'MPI us':>12} {'loopback us':>12} {'MPI GB/s':>10} {'loopback GB/s':>14} {'speed':>7}")
    speed = 0.0
    for size in sorted(mpi[0]):
        ours = statistics.median(result[size] for result in nccl)
        theirs = statistics.median(result[size] for result in mpi)
        speed = theirs / ours
        print(f"{size:>10} {theirs:>12.1f} {ours:>12.1f} {size / theirs / 1e3:>10.2f} {size / ours / 1e3:>14.2f}"
              f" {speed:>6.2f}x")
    return 0 if speed >= 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
