"""Samples are shuffled by a generator that draws its seed from the system: no run is like another."""
import os
import random
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29556")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    shuffle = random.Random(0 if FIXED else int.from_bytes(os.urandom(8), "little"))
    data = torch.randn(32, 4)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = list(range(len(data)))
    shuffle.shuffle(rows)
    for row in rows[:8]:
        optimizer.zero_grad()
        model(data[row]).pow(2).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)  # PLACE
        optimizer.step()
    dist.destroy_process_group()


main()
