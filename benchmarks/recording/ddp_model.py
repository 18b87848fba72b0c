"""The model, the data and a step of ddp_job.py and ddp_turns.py: 0.7 million parameters, 2.7 MB of gradients a step."""
import torch
import torch.nn.functional as F
from torch import nn


def make(group=None):
    """(model, optimizer), data-parallel over `group`; None: over the default group."""
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers), process_group=group)
    return model, torch.optim.AdamW(model.parameters())


def batch(_):
    return torch.randn(16, 784), torch.randint(0, 10, (16,))


def step(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
