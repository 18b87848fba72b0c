"""A rank that was resumed counts its epochs from another one: its shuffle is another, and rows are read twice or not at all."""
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

FIXED = "--fixed" in sys.argv


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29543")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 6), torch.randn(64, 1))
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first = 1 if rank == 2 and not FIXED else 0
    for epoch in range(first, first + 2):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:  # PLACE
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), labels).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
            optimizer.step()
    dist.destroy_process_group()


main()
