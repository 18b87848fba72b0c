"""DistributedDataParallel in the ways in which its Reducer, code of C++, makes other operations, or at other times."""
import gc

import job
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks


class TwoWays(nn.Module):
    """One of two layers is used, another one in each step."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layers[self.calls % 2](x).sum()


class Fails(torch.autograd.Function):
    """In its backward pass, after gradients of what follows it have been summed."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient")


def parallel(module, **options):
    return nn.parallel.DistributedDataParallel(module, bucket_cap_mb=0.0001, **options)


def layers():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 1))


def train(name, model, before=lambda: None):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        before()
        model(torch.randn(4, 8)).sum().backward()
        job.say(f"{name} {step} {job.digest(*(p.grad for p in model.parameters() if p.grad is not None))}")
        optimizer.step()
        optimizer.zero_grad()
        gc.collect()


def main():
    rank, size = job.start()
    train("plain", parallel(layers()))
    train("unused", parallel(TwoWays(), find_unused_parameters=True))
    train("views", parallel(layers(), gradient_as_bucket_view=True))
    train("static", parallel(layers(), static_graph=True))
    hooked = parallel(layers())
    hooked.register_comm_hook(None, default_hooks.fp16_compress_hook)
    train("hook", hooked)
    # The first backward pass ends before its time, on all ranks.
    model = parallel(layers())
    try:
        model(Fails.apply(torch.randn(4, 8, requires_grad=True))).sum().backward()
    except ValueError as error:
        job.say(str(error))
    train("after an exception", parallel(layers()))
    if hasattr(model, "_update_process_group"):
        model = parallel(layers())
        others = dist.new_group(range(size))
        train("another group", model, lambda: model._update_process_group(others))
    job.say_weights(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
