"""A small data-parallel job on CPUs that saves its state in three ways, for benchmarks/checkpoints/checkpoint_cost.py: 2.9 million parameters, AdamW.

Every JOB_EVERY steps: Deja's checkpoint, torch.save by rank 0, and torch.distributed.checkpoint (replicated state, shared among the
ranks as it does), each of the same state and from a barrier. Says on rank 0 how long each stopped the training, and how long a step takes.
"""
import json
import os
import statistics
import time

import deja
import deja.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn

STEPS, EVERY = int(os.environ["JOB_STEPS"]), int(os.environ["JOB_EVERY"])
FOLDER = os.environ["JOB_FOLDER"]


def stopped(save):
    dist.barrier()
    begin = time.perf_counter()
    save()
    dist.barrier()
    return time.perf_counter() - begin


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    layers = [nn.Linear(784, 1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.Linear(1024, 10)]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters())
    if os.environ.get("JOB_DEJA"):
        deja.torch.watch(model, optimizer, every=EVERY)
    times = {"deja": [], "torch.save": [], "dcp": []}
    steps = []
    for step in range(STEPS):
        saves = step > 0 and step % EVERY == 0
        if saves:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            path = f"{FOLDER}/step-{step}"
            times["torch.save"].append(stopped(lambda: dist.get_rank() == 0 and torch.save(state, f"{path}.pt")))
            times["dcp"].append(stopped(lambda: dcp.save(state, checkpoint_id=f"{path}.dcp")))
            times["deja"].append(stopped(lambda: deja.step(step)))
        begin = time.perf_counter()
        if not saves:
            deja.step(step)
        loss = F.cross_entropy(model(torch.randn(32, 784)), torch.randint(0, 10, (32,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step > 2:
            steps.append(time.perf_counter() - begin)
    if dist.get_rank() == 0:
        medians = {name: statistics.median(taken) for name, taken in times.items()}
        print(json.dumps({"step": statistics.median(steps), "stalls": medians}), flush=True)
    dist.destroy_process_group()


main()
