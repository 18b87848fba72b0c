"""One job over gloo and NCCL: what is on the CPU goes by the one, what is on the GPU by the other."""
import os
import random

import job
import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call

GPU = torch.device("cuda", int(os.environ["LOCAL_RANK"]))


class OnTheHost(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, batch):
        return functional_call(self.inner, {name: p.cpu() for name, p in self.inner.named_parameters()}, (batch,))


def show(name, *values):
    job.say(f"{name} {job.digest(*values)}")


def both(name, group=None):
    dist.all_reduce(x := torch.randn(6), group=group)
    dist.all_reduce(y := torch.randn(7).to(GPU), group=group)
    show(f"{name}: all_reduce", x, y)
    dist.broadcast(x := torch.randn(4), 1, group=group)
    dist.broadcast(y := torch.randn(5).to(GPU), 1, group=group)
    show(f"{name}: broadcast", x, y)
    dist.all_gather(out := [torch.empty(3, device=GPU) for _ in range(world)], torch.randn(3).to(GPU), group=group)
    show(f"{name}: all_gather", *out)
    if rank == 0:
        dist.send(torch.randn(8).to(GPU), 1, group=group)
        dist.send(torch.randn(8), 1, group=group)
    else:
        dist.recv(y := torch.empty(8, device=GPU), 0, group=group)
        dist.recv(x := torch.empty(8), 0, group=group)
        show(f"{name}: recv", x, y)
    works = [dist.all_reduce(x := torch.randn(6), group=group, async_op=True),
             dist.all_reduce(y := torch.randn(7).to(GPU), group=group, async_op=True)]
    for work in works:
        work.wait()
    show(f"{name}: async_op", x, y)
    dist.barrier(group=group)


def trained(name, net):
    model = nn.parallel.DistributedDataParallel(net)
    model(torch.randn(4, 6)).sum().backward()
    show(f"{name}: gradients of DDP", *(p.grad.cpu() for p in model.parameters()))


dist.init_process_group("cpu:gloo,cuda:nccl")
torch.cuda.set_device(GPU)
rank, world = dist.get_rank(), dist.get_world_size()
if "JOB_SEED" in os.environ:
    torch.manual_seed(int(os.environ["JOB_SEED"]) + rank)
    random.seed(int(os.environ["JOB_SEED"]) + rank)
both("all")
dist.all_gather_object(out := [None] * world, random.random())
show("all_gather_object", *out)
both("new_group", dist.new_group())
trained("on the CPU", nn.Linear(6, 3))
trained("on the GPU", OnTheHost(nn.Linear(6, 3).to(GPU)))
dist.destroy_process_group()
os.write(1, f"rank {rank} ends\n".encode())
