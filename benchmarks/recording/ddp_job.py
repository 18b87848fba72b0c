"""A small data-parallel job on CPUs, for benchmarks/recording/record_overhead.py: seeded, the model of ddp_model.py.

    benchmarks/recording/record_overhead.py --ranks 2 -- /usr/bin/python3 $PWD/benchmarks/recording/ddp_job.py

JOB_STEPS, JOB_THREADS (of OpenMP) and JOB_WORKERS (of the data loader; 0: no loader's processes) change it.
"""
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

import ddp_model

torch.set_num_threads(int(os.environ.get("JOB_THREADS", "1")))
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model, optimizer = ddp_model.make()
steps = int(os.environ.get("JOB_STEPS", "200"))


class Batches(Dataset):
    def __len__(self):
        return steps

    __getitem__ = staticmethod(ddp_model.batch)


def batches():
    workers = int(os.environ.get("JOB_WORKERS", "0"))
    if workers:
        return DataLoader(Batches(), batch_size=None, num_workers=workers)
    return map(ddp_model.batch, range(steps))


for images, labels in batches():
    ddp_model.step(model, optimizer, images, labels)
dist.destroy_process_group()
