"""A job that writes its own dumps of PyTorch's Flight Recorder into the folder DUMPS, one a rank.

usage: flight_recorder.py well|missing|other|hang
  missing: rank 1 leaves one all-reduce out; other: rank 1 gathers where the others reduce
  hang: rank 1 never reaches the last all-reduce, in which the others wait
"""
import os
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace


def train(mode, rank, world_size):
    gradients = torch.full((6,), float(rank))
    for _ in range(3):
        dist.all_reduce(gradients)
    dist.broadcast(gradients, 0)
    dist.barrier()
    if mode == "well":
        return
    if mode == "hang":
        if rank != 1:
            threading.Thread(target=dist.all_reduce, args=(gradients,), daemon=True).start()
    elif rank != 1:
        dist.all_reduce(gradients, async_op=True)
    elif mode == "other":
        dist.all_gather_into_tensor(torch.zeros(6 * world_size), gradients, async_op=True)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    train(sys.argv[1], rank, dist.get_world_size())
    time.sleep(1.5)
    with open(os.path.join(os.environ["DUMPS"], f"rank_{rank}"), "wb") as file:
        file.write(_dump_fr_trace())
    os.write(1, f"rank {rank} wrote its dump\n".encode())
    os._exit(0)


main()
