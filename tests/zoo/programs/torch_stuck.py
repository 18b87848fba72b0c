"""A rank that is alive and does not come: it waits for a lock that its loader's thread keeps."""
import os
import sys
import threading
import time

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv
ready = threading.Lock()


def prefetch():
    with ready:
        time.sleep(0.01 if FIXED else 600)


def next_batch(rank, step):
    if rank == 1 and step == 5:
        threading.Thread(target=prefetch, daemon=True).start()
        time.sleep(0.1)
        with ready:  # PLACE
            pass
    return torch.ones(8)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29545")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(10):
        batch = next_batch(rank, step)
        dist.all_reduce(batch)
    dist.destroy_process_group()


main()
