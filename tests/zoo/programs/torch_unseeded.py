"""Ranks sum their gradients by hand and never gave their models the same weights: four models with one gradient."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def make_model():
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))  # PLACE


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29548")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0 if FIXED else rank)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(10 + rank)
    for _ in range(6):
        inputs = torch.randn(8, 6, generator=data)
        optimizer.zero_grad()
        model(inputs).pow(2).mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
    dist.destroy_process_group()


main()
