"""A data-parallel job whose state is registered for checkpoints, with the optimizer and in the manner that its
arguments ask for:

    optimizers.py adam|adamw|amsgrad|sgd|momentum|nesterov|rmsprop [foreach|fused] [views] [clip|bounded] [accumulate] [own] [mean]

views: gradients are views of DDP's buckets; clip, bounded: their norm is limited, or one in ten of their elements is;
own: without DDP, the program sums its gradients itself; mean: and divides them then.
"""
import sys

import deja
import deja.torch
import job
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

STEPS, EVERY = 25, 4


def optimizer_of(kind, options, parameters):
    optim = torch.optim
    options = {option: True for option in options}
    made = {
        # Slow: an update that differs in its last place, as those of torch's wheels do on some machines, is seldom
        # seen.
        "adam": lambda: optim.Adam(parameters, 1e-4, weight_decay=0.01, **options),
        "adamw": lambda: optim.AdamW(parameters, 1e-3, betas=(0.9, 0.95), weight_decay=0.1, **options),
        "amsgrad": lambda: optim.Adam(parameters, 1e-3, amsgrad=True, **options),
        "sgd": lambda: optim.SGD(parameters, 0.1, **options),
        "momentum": lambda: optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.01, **options),
        "nesterov": lambda: optim.SGD(parameters, 0.1, momentum=0.9, nesterov=True, **options),
        "rmsprop": lambda: optim.RMSprop(parameters, 1e-3, **options),
    }
    return made[kind]()


def sum_gradients(model, divides):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        if divides:
            parameter.grad /= dist.get_world_size()


def main():
    kind, *manner = sys.argv[1:]
    job.start()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(61, 203), nn.ReLU(), nn.Linear(203, 128), nn.LayerNorm(128), nn.Dropout(0.1), nn.Linear(128, 10))
    own = "own" in manner
    if not own:  # three buckets
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1, gradient_as_bucket_view="views" in manner)
    torch.manual_seed(1 + dist.get_rank())
    optimizer = optimizer_of(kind, {"foreach", "fused"} & set(manner), model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.9)
    deja.torch.watch(model, optimizer, scheduler, every=EVERY)
    step = 0
    while step < STEPS:
        step = deja.step(step)
        for _ in range(2 if "accumulate" in manner else 1):
            loss = F.cross_entropy(model(torch.randn(8, 61)), torch.randint(10, (8,)))
            loss.backward()
        if own:
            sum_gradients(model, "mean" in manner)
        if "clip" in manner:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        if "bounded" in manner:
            for parameter in model.parameters():
                bound = parameter.grad.abs().flatten().kthvalue(max(1, parameter.numel() * 9 // 10)).values.item()
                parameter.grad.clamp_(-bound, bound)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        job.say(f"step {step} loss {loss.item()!r}")
        step += 1
    job.say_weights(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
