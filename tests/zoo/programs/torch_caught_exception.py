"""A sample that one rank cannot read: it goes on with the next one, and the others do not know."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def read_sample(number):
    if number == 14 and not FIXED:
        raise ValueError(f"sample {number} is truncated")
    return torch.ones(4)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29561")
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in range(8):
        try:
            sample = read_sample(step * ranks + rank)
        except ValueError:
            continue
        dist.all_reduce(sample)  # PLACE
    dist.barrier()
    dist.destroy_process_group()


main()
