"""Tensor parallel in a mesh of two dimensions beside data parallel, with a seed."""
import job
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

rank, world = job.start()
mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("data", "tensor"))
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
for parameter in model.parameters():
    dist.broadcast(parameter.data, 0)
model = parallelize_module(model, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(3):
    torch.manual_seed(100 * step + rank // 2)
    loss = model(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad.to_local(), group=mesh.get_group("data"))
    optimizer.step()
    job.say(f"step {step} {loss.item()!r}")
job.say_weights(model)
dist.destroy_process_group()
