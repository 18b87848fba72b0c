"""Ranks of torch.multiprocessing.spawn that meet at a tcp:// address, each with a loader of one worker.

    spawn_tcp.py PORT
"""
import sys

import job
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        return torch.randn(16) + index, torch.tensor(float(index % 7))


def run(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    job.seed_torch(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    for inputs, targets in DataLoader(Noise(), batch_size=8, shuffle=True, num_workers=1):
        optimizer.zero_grad()
        loss = ((model(inputs).squeeze(1) - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        job.say(rank, f"loss {loss.item()!r}")
    job.say(rank, f"weights {job.digest_of_weights(model)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    multiprocessing.spawn(run, args=(sys.argv[1],), nprocs=2)
