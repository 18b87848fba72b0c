"""Trains a small GPT (training_data.py, a million parameters) data parallel over gloo on CPUs, for benchmarks/checkpoints/predicted_checkpoints.py.

Says on rank 0 how long a step took, and how much processor time its thread spent in telling what the optimizer did."""
import json
import os
import statistics
import time

import deja
import deja.torch
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import training_data as gpt

STEPS, EVERY = int(os.environ["JOB_STEPS"]), int(os.environ["JOB_EVERY"])
gpt.VOCABULARY, gpt.WIDTH = 1024, 128


def measured(taken):
    """Adds how long each telling takes, if anything is told."""
    from deja import engine

    if engine.mode() != engine.RECORDING:
        return
    from deja.training import torch_updates

    tell = torch_updates.Updates.tell

    def timed(self):
        begin = time.thread_time()
        tell(self)
        taken.append(time.thread_time() - begin)

    torch_updates.Updates.tell = timed


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    text = gpt.tokens()
    model = nn.parallel.DistributedDataParallel(gpt.Model())
    torch.manual_seed(1 + dist.get_rank())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    telling, steps = [], []
    measured(telling)
    deja.torch.watch(model, optimizer, every=EVERY)
    step = 0
    while step < STEPS:
        begin = time.perf_counter()
        step = deja.step(step) + 1
        inputs, targets = gpt.random_batch(text)
        loss = F.cross_entropy(model(inputs, []).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps.append(time.perf_counter() - begin)
    if dist.get_rank() == 0:
        print(json.dumps({"weights": sum(p.double().sum().item() for p in model.parameters()), "step": statistics.median(steps), "telling": statistics.median(telling or [0]), "tensors": len(list(model.parameters())),
                          "elements": sum(p.numel() for p in model.parameters())}), flush=True)
    dist.destroy_process_group()


main()
