"""Two stages that send activations forward and gradients back."""
import job
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

rank, _ = job.start()
layer = nn.Linear(16, 16) if rank == 0 else nn.Linear(16, 4)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for step in range(6):
    if rank == 0:
        out = F.dropout(layer(torch.randn(8, 16)), 0.3)
        dist.send(out.detach(), 1)
        gradient = torch.empty_like(out)
        dist.recv(gradient, 1)
        out.backward(gradient)
        value = gradient.sum().item()
    else:
        rows = torch.empty(8, 16)
        dist.recv(rows, 0)
        rows.requires_grad_(True)
        loss = F.cross_entropy(layer(rows), torch.randint(0, 4, (8,)))
        loss.backward()
        dist.send(rows.grad, 0)
        value = loss.item()
    optimizer.step()
    optimizer.zero_grad()
    job.say(f"step {step} {value!r}")
job.say_weights(layer)
dist.destroy_process_group()
