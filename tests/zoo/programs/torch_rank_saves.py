"""A checkpoint is due by each rank's clock; rank 0 saves, which tells the others an object first, and they train on."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def clock(rank, step):
    return step * 5.0 + (0.05 if rank == 0 and not FIXED else 0.0)


def save(path):
    name = [path]
    dist.broadcast_object_list(name, src=0)  # PLACE


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29532")
    dist.init_process_group("gloo")
    gradient = torch.ones(25)
    for step in range(1, 8):
        dist.all_reduce(gradient)
        if clock(dist.get_rank(), step) > 30.0:
            save("last.pt")
    dist.destroy_process_group()


main()
