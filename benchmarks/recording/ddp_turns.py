"""The job of step_overhead.py: two models of ddp_model.py train in turns.

One has the group that Deja records, the other one the real group inside it.

The optimizer of the first model is the first that makes a step, and only its steps are steps of the trace. Rank 0
prints JSON: the milliseconds of a step, elapsed and of the main thread's processor time, two numbers a turn, of both.
"""
import json
import os
import time

import torch
import torch.distributed as dist

import ddp_model

TURNS, STEPS, WARM_UP = int(os.environ.get("JOB_TURNS", "900")), 2, 30

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
group = dist.distributed_c10d._get_default_group()
models = {"recorded": ddp_model.make(), "real": ddp_model.make(getattr(group, "_deja_as_group", group))}


def turn(name):
    clocks = time.perf_counter, time.thread_time
    starts = [clock() for clock in clocks]
    for number in range(STEPS):
        ddp_model.step(*models[name], *ddp_model.batch(number))
    return [(clock() - start) / STEPS * 1000 for clock, start in zip(clocks, starts)]


times = {name: [] for name in models}
names = list(models)
for number in range(-WARM_UP, TURNS):
    for name in names if number % 2 == 0 else reversed(names):
        taken = turn(name)
        if number >= 0:
            times[name].append(taken)
if dist.get_rank() == 0:
    print(json.dumps(times))
dist.destroy_process_group()
