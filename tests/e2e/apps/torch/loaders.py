"""Loaders of PyTorch in a process of its own. Usage: loaders.py WORKERS [METHOD] [WORD …]: persistent, left (a loop is
left early), dropped (an iterator is dropped half way), shared (tensors by the file system), unordered, prefetch, dies (a
worker ends in the middle), raises (its data set raises)."""
import os
import random
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    """Numbers that no seed makes; which worker gets which is seen in them."""

    def __init__(self, words):
        self.words = words

    def __len__(self):
        return 40

    def __getitem__(self, i):
        if i == 21 and "dies" in self.words:
            os._exit(3)
        if i == 21 and "raises" in self.words:
            raise ValueError("no such row")
        return torch.rand(8), torch.tensor(int.from_bytes(os.urandom(2), "little")), os.getpid()


def rounds(loader, words):
    pids = {}
    for batch, (rows, numbers, pid) in enumerate(loader):
        who = pids.setdefault(int(pid[0]), len(pids))
        # What comes from another process decides what this one draws.
        drawn = os.urandom(1 + int(numbers.sum()) % 5).hex()
        print(batch, who, round(float(rows.sum()), 5), int(numbers.sum()), drawn, random.random() < 0.5, flush=True)
        if batch == 3 and "left" in words:
            break


def main():
    workers, words = int(sys.argv[1]), sys.argv[2:]
    if "shared" in words:
        torch.multiprocessing.set_sharing_strategy("file_system")
    options = {}
    method = next((word for word in words if word in ("fork", "spawn", "forkserver")), None)
    if method:
        options["multiprocessing_context"] = method
    if "prefetch" in words:
        options["prefetch_factor"] = 5
    if "unordered" in words:
        options["in_order"] = False
    loader = DataLoader(Noise(words), batch_size=4, shuffle=True, num_workers=workers, persistent_workers="persistent" in words, **options)
    if "dropped" in words:
        iterator = iter(loader)
        print([int(next(iterator)[1].sum()) for _ in range(2)])
        del iterator
    try:
        for _ in range(2):
            rounds(loader, words)
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, str(error).splitlines()[0][:40])
    print("at the end", os.urandom(2).hex())


if __name__ == "__main__":
    main()
