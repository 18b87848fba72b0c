"""A data-parallel job whose state is registered for checkpoints, with the optimizers and in the manners that its
arguments ask for. Jobs that "+" separates train one model each, side by side:

    optimizers.py JOB [+ JOB …]
    JOB: adam|adamw|amsgrad|sgd|momentum|nesterov|rmsprop [foreach|fused] [views] [clip|bounded] [accumulate] [own] [mean]

views: gradients are views of DDP's buckets; clip, bounded: their norm is limited, or one in ten of their elements is;
own: without DDP, the program sums its gradients itself; mean: and divides them then.
"""
import itertools
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


class Training:
    """One model, its optimizer, and what a step does with them."""

    def __init__(self, kind, *manner):
        self.manner = manner
        self.own = "own" in manner
        model = nn.Sequential(nn.Linear(61, 203), nn.ReLU(), nn.Linear(203, 128), nn.LayerNorm(128), nn.Dropout(0.1), nn.Linear(128, 10))
        if not self.own:  # three buckets
            model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1, gradient_as_bucket_view="views" in manner)
        self.model = model
        self.optimizer = optimizer_of(kind, {"foreach", "fused"} & set(manner), model.parameters())
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 5, 0.9)

    def watched(self):
        return self.model, self.optimizer, self.scheduler

    def step(self):
        for _ in range(2 if "accumulate" in self.manner else 1):
            loss = F.cross_entropy(self.model(torch.randn(8, 61)), torch.randint(10, (8,)))
            loss.backward()
        if self.own:
            sum_gradients(self.model, "mean" in self.manner)
        if "clip" in self.manner:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        if "bounded" in self.manner:
            for parameter in self.model.parameters():
                bound = parameter.grad.abs().flatten().kthvalue(max(1, parameter.numel() * 9 // 10)).values.item()
                parameter.grad.clamp_(-bound, bound)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.scheduler.step()
        return loss.item()


def jobs_of(words):
    return [list(job) for plus, job in itertools.groupby(words, lambda word: word == "+") if not plus]


def main():
    job.start()
    torch.manual_seed(0)
    trainings = [Training(*words) for words in jobs_of(sys.argv[1:])]
    torch.manual_seed(1 + dist.get_rank())
    deja.torch.watch(*itertools.chain(*(training.watched() for training in trainings)), every=EVERY)
    step = 0
    while step < STEPS:
        step = deja.step(step)
        losses = [training.step() for training in trainings]
        job.say(f"step {step} losses {losses!r}")
        step += 1
    for training in trainings:
        job.say_weights(training.model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
