"""Layers that are computed by other means, with dropout, unseeded: MODE is compile, compile-fsdp2, checkpoint or
reentrant."""
import os

import job
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from train import wrap

mode = os.environ["MODE"]


class Checkpointed(nn.Module):
    """Its activations are computed again in the backward pass, with the same random numbers."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, rows):
        return checkpoint(self.layers, rows, use_reentrant=mode == "reentrant")


def main():
    job.start()
    layers = [nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4)]
    if mode.startswith("compile"):
        model = torch.compile(wrap(nn.Sequential(*layers), [mode.partition("-")[2]]))
    else:
        model = wrap(nn.Sequential(nn.Linear(16, 16), Checkpointed(nn.Sequential(*layers))), ["ddp"])
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(8, 16)), torch.randint(4, (8,)))
        loss.backward()
        optimizer.step()
        job.say(f"step {step} {loss.item()!r}")
    job.say_weights(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
