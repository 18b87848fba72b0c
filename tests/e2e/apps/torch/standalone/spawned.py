"""Ranks that the program starts itself, with what they are to do: torch.multiprocessing's spawn, or its fork.

    spawned.py RENDEZVOUS [spawn | fork]
"""
import os
import random
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing


def run(rank, world, rendezvous, factor):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world)
    dist.all_reduce(x := torch.randn(8) * factor)
    os.write(1, f"rank {rank} {x.tolist()!r}\n".encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    method = sys.argv[2] if len(sys.argv) > 2 else "spawn"
    multiprocessing.start_processes(run, args=(2, sys.argv[1], random.random()), nprocs=2, start_method=method)
