"""One rank's loader decodes what the others find decoded: all wait for it in each step."""
import os
import sys
import time

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def load(rank, step):
    time.sleep(0.25 if rank == 2 and not FIXED else 0.01)
    return torch.ones(64)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29554")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(12):
        batch = load(rank, step)
        dist.all_reduce(batch)  # PLACE
    dist.destroy_process_group()


main()
