"""A batch that one rank cannot handle: it raises, and the others wait in their all-reduce."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def loss_of(batch, rank, step):
    if rank == 2 and step == 4 and not FIXED:
        raise ValueError("negative loss")  # PLACE
    return batch.sum()


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(8):
        loss = loss_of(torch.ones(4), rank, step)
        dist.all_reduce(loss)
    dist.destroy_process_group()


main()
