"""A small data-parallel job on CPUs, for benchmarks/recording/record_overhead.py: seeded, 0.7 million parameters.

    benchmarks/recording/record_overhead.py --ranks 2 -- /usr/bin/python3 $PWD/benchmarks/recording/ddp_job.py
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
layers = [nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(int(os.environ.get("JOB_STEPS", "200"))):
    loss = F.cross_entropy(model(torch.randn(16, 784)), torch.randint(0, 10, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
