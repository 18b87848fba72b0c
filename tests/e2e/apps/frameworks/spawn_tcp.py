"""Ranks of torch.multiprocessing.spawn that meet at a tcp:// address, each with a loader of one worker. The rows, and
a queue for what comes of it, they have from the process that starts them. Then two children of each rank write into one
pipe, as they come.

    spawn_tcp.py PORT
"""
import os
import sys
import time

import job
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, rows, targets):
        self.rows, self.targets = rows, targets

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index] + torch.randn(16), self.targets[index]


def race():
    """Whose bytes came when."""
    reader, writer = os.pipe()
    waits, begins = os.pipe()
    for name in (b"a", b"b"):
        if os.fork() == 0:
            os.read(waits, 1)
            for _ in range(40):
                os.write(writer, name)
                time.sleep(0.0005)
            os._exit(0)
    os.close(writer)
    os.write(begins, b"..")
    order = b""
    while part := os.read(reader, 1):
        order += part
    for _ in range(2):
        os.wait()
    return order.decode()


def run(rank, port, rows, targets, ends):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    job.seed_torch(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for inputs, wanted in DataLoader(Noisy(rows, targets), batch_size=8, shuffle=True, num_workers=1):
        optimizer.zero_grad()
        loss = ((model(inputs).squeeze(1) - wanted) ** 2).mean()
        loss.backward()
        optimizer.step()
        job.say(rank, f"loss {loss.item()!r}")
    job.say(rank, f"weights {job.digest_of_weights(model)}")
    job.say(rank, f"order {race()}")
    ends.put((rank, loss.item()))
    dist.destroy_process_group()


def main():
    job.seed_torch(0)
    rows = torch.randn(48, 16)
    ends = multiprocessing.get_context("spawn").SimpleQueue()
    multiprocessing.spawn(run, args=(sys.argv[1], rows, torch.randn(48), ends), nprocs=2)
    print("ends", sorted(ends.get() for _ in range(2)), flush=True)


if __name__ == "__main__":
    main()
