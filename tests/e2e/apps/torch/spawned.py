"""Ranks that the program starts itself, with what they are to do: torch.multiprocessing.spawn."""
import os
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
    multiprocessing.spawn(run, args=(2, sys.argv[1], 3.0), nprocs=2)
