"""Rank 0's loader has one batch more than the others': they leave the loop and wait at the barrier behind it."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def batches(rank, world):
    samples = 41
    return samples // world + (0 if FIXED else int(rank < samples % world))


def train_step(model, optimizer, batch):
    optimizer.zero_grad()
    loss = model(batch).pow(2).mean()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # PLACE
    optimizer.step()


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29531")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(batches(dist.get_rank(), dist.get_world_size())):
        train_step(model, optimizer, torch.randn(4, 8))
    dist.barrier()
    dist.destroy_process_group()


main()
