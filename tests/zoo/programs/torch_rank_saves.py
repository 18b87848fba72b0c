"""A checkpoint is due by each rank's clock; one rank is due and tells the others an object first, and they train on."""
import os
import sys
import time

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv
EVERY = 2.0


def save(path):
    name = [path]
    dist.broadcast_object_list(name, src=0)  # PLACE


def is_due(last):
    due = time.time() - last > EVERY
    if FIXED:
        agreed = torch.tensor([float(due)])
        dist.broadcast(agreed, src=0)
        due = bool(agreed.item())
    return due


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29532")
    dist.init_process_group("gloo")
    last = time.time()
    if dist.get_rank() == 1:
        time.sleep(1.5)
        last = time.time()
    gradient = torch.ones(25)
    for _ in range(40):
        time.sleep(0.1)
        dist.all_reduce(gradient)
        if is_due(last):
            save("last.pt")
            last = time.time()
    dist.destroy_process_group()


main()
