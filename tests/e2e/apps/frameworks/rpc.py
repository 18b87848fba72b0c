"""torch.distributed.rpc: one rank asks the other to add two tensors."""
import os

import job
import torch
from torch.distributed import rpc


def add(a, b):
    return a + b


def main():
    rank = int(os.environ["RANK"])
    job.seed_torch(rank)
    rpc.init_rpc(f"rank{rank}", rank=rank, world_size=2)
    for _ in range(5):
        mine = torch.randn(4)
        job.say(rank, f"{rpc.rpc_sync(f'rank{1 - rank}', add, args=(mine, 1)).tolist()!r}")
    rpc.shutdown()


if __name__ == "__main__":
    main()
