"""A run is resumed from its checkpoint without what the optimizer remembered."""
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

FIXED = "--fixed" in sys.argv
EPOCHS = 4


def train(path, resume):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 6), torch.randn(32, 1))
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = 0
    if resume:
        state = torch.load(path)
        model.load_state_dict(state["model"])
        if FIXED:
            optimizer.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["generator"])
        first = state["epoch"] + 1
    for epoch in range(first, EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), labels).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
            optimizer.step()  # PLACE
        if epoch == 1 and not resume and dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch,
                        "generator": torch.get_rng_state()}, path)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29558")
    dist.init_process_group("gloo")
    train(os.path.join(os.environ["ZOO_DATA"], "last.pt"), "--resume" in sys.argv)
    dist.destroy_process_group()


main()
