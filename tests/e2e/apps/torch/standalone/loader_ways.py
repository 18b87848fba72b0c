"""DataLoader in its ways, one process, unseeded.

    loader_ways.py WAY ... [files]

WAY: fork, spawn, forkserver, persistent, unordered, dropped, dies, killed, crashes, victim, raises, timeout, one after
the other. files: tensors are shared by file_system. Each way prints what came in which order, and then draws. A
process that took another number of messages draws something else. victim: another program is to kill a worker.
"""
import ctypes
import itertools
import os
import random
import signal
import sys
import time
import uuid

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Noise(Dataset):
    """Some rows take longer than others, for which time decides."""

    def __len__(self):
        return 48

    def __getitem__(self, index):
        time.sleep(random.random() / 200)
        return torch.randn(300) + index


class Dying(Noise):
    def __init__(self, how):
        self.how = how

    def __getitem__(self, index):
        if index == 30:
            if self.how == "raises":
                raise ValueError(f"row {index}")
            if self.how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "crashes":
                ctypes.string_at(0)
            if self.how == "dies":
                os._exit(7)
        return super().__getitem__(index)


class Stream(IterableDataset):
    def __iter__(self):
        me = get_worker_info().id
        for _ in range(10 + me):
            time.sleep(random.random() / 200)
            yield torch.randn(300) + me


def passes(loader, count=1):
    for number in range(count):
        for batch in loader:
            print(number, f"{batch.sum().item()!r}", flush=True)


def dropped():
    loader = DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=3, prefetch_factor=4)
    for taken in (1, 4, 7):
        iterator = iter(loader)
        for batch in itertools.islice(iterator, taken):
            print(taken, f"{batch.sum().item()!r}", flush=True)
        del iterator


def dies(how):
    try:
        passes(DataLoader(Dying(how), batch_size=4, num_workers=2), 1000 if how == "victim" else 1)
    except (RuntimeError, ValueError, OSError, EOFError) as error:
        print(type(error).__name__, str(error).splitlines()[-1:], flush=True)


def load(way):
    if way in ("spawn", "forkserver"):
        passes(DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=2, multiprocessing_context=way))
    elif way == "persistent":
        loader = DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True)
        passes(loader, 2)
        next(iter(loader))
    elif way == "unordered":
        passes(DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=4, in_order=False), 2)
        passes(DataLoader(Stream(), batch_size=4, num_workers=3, in_order=False))
    elif way == "dropped":
        dropped()
    elif way in ("dies", "killed", "crashes", "victim", "raises"):
        dies(way)
    elif way == "timeout":
        passes(DataLoader(Noise(), batch_size=4, num_workers=2, timeout=20))
    elif way == "fork":
        passes(DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=2), 2)
    else:
        sys.exit(f"loader_ways.py: {way}: no such way")
    print(way, uuid.uuid4().hex, random.random(), torch.randn(1).item(), flush=True)


def main():
    torch.set_num_threads(1)
    ways = sys.argv[1:]
    if "files" in ways:
        ways.remove("files")
        torch.multiprocessing.set_sharing_strategy("file_system")
    for way in ways:
        load(way)


if __name__ == "__main__":
    main()
