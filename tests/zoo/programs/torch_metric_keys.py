"""Metrics are averaged key by key, in the order in which a rank has met the kinds of its samples: values of different metrics are added."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


class Logger:
    def __init__(self):
        self.totals = {}

    def log(self, key, value):
        self.totals[key] = self.totals.get(key, 0.0) + value

    def reduce(self):
        names = sorted(self.totals) if FIXED else list(self.totals)
        for name in names:
            value = torch.tensor(self.totals[name])
            dist.all_reduce(value)  # PLACE
            self.totals[name] = value.item() / dist.get_world_size()


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29544")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    kinds = ["text", "image", "audio"]
    logger = Logger()
    for step in range(6):
        kind = kinds[(step + (rank == 1)) % 3]
        logger.log(f"loss_{kind}", float(step + 1))
    logger.reduce()
    dist.barrier()
    dist.destroy_process_group()


main()
