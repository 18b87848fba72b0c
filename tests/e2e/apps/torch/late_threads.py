"""A job whose threads of gloo get the processor when the interpreter has begun to end: then they free what the last
operation held."""
import os
import time

import job
import torch
import torch.distributed as dist


class Slow:
    sleep = time.sleep

    def __del__(self):
        Slow.sleep(0.2)


job.start()
kept = Slow()  # the interpreter frees it while it ends
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for task in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{task}/comm") as file:
        if file.read().startswith("pt_gloo_runloop"):
            os.sched_setaffinity(int(task), os.sched_getaffinity(0))
            os.sched_setscheduler(int(task), os.SCHED_IDLE, os.sched_param(0))
for _ in range(3):
    model(torch.randn(3, 4)).sum().backward()
job.say_weights(model)
dist.destroy_process_group()
