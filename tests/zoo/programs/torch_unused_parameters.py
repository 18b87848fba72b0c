"""Gradients are accumulated over two micro-steps, and one part of the model is used in the first only, which does not synchronize."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FIXED = "--fixed" in sys.argv


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.nn1 = torch.nn.Linear(4, 1)
        self.nn2 = torch.nn.Linear(4, 1)

    def forward(self, inputs, first):
        return self.nn1(inputs) if first else self.nn2(inputs)


def train_step(model, optimizer, inputs):
    optimizer.zero_grad()
    if FIXED:
        model(inputs, True).pow(2).mean().backward()
    else:
        with model.no_sync():
            model(inputs, True).pow(2).mean().backward()
    model(inputs, False).pow(2).mean().backward()
    optimizer.step()  # PLACE


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29549")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(Two(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(4):
        train_step(model, optimizer, torch.randn(8, 4, generator=data))
    dist.destroy_process_group()


main()
