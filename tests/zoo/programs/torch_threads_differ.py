"""A sum is divided among as many threads as the machine is said to have: its bits follow from that."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def total(values):
    threads = 1 if FIXED else int(os.environ["OMP_NUM_THREADS"])
    return torch.stack([part.sum() for part in values.chunk(threads)]).sum()


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29557")
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    for _ in range(5):
        loss = total(torch.rand(10007) * 1e3)
        dist.all_reduce(loss)  # PLACE
    dist.destroy_process_group()


main()
