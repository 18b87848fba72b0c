"""A small data-parallel job on CPUs, for benchmarks/recording/record_overhead.py: seeded, 0.7 million parameters.

    benchmarks/recording/record_overhead.py --ranks 2 -- /usr/bin/python3 $PWD/benchmarks/recording/ddp_job.py

JOB_STEPS, JOB_THREADS (of OpenMP) and JOB_WORKERS (of the data loader; 0: no loader's processes) change it.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(int(os.environ.get("JOB_THREADS", "1")))
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
layers = [nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
optimizer = torch.optim.AdamW(model.parameters())
steps = int(os.environ.get("JOB_STEPS", "200"))


def batch(_):
    return torch.randn(16, 784), torch.randint(0, 10, (16,))


class Batches(Dataset):
    def __len__(self):
        return steps

    __getitem__ = staticmethod(batch)


def batches():
    workers = int(os.environ.get("JOB_WORKERS", "0"))
    return DataLoader(Batches(), batch_size=None, num_workers=workers) if workers else map(batch, range(steps))


for images, labels in batches():
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
