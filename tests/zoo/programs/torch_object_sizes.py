"""State is gathered as objects, whose sizes are gathered first; a rank that has left a call out takes another tensor for a size."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def sync_steps(rank, steps):
    mine = torch.tensor([steps])
    gathered = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, mine)  # PLACE
    return gathered


def save_state(state):
    states = [None] * dist.get_world_size()
    dist.all_gather_object(states, state)
    return states


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29546")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    gradient = torch.ones(16)
    for step in range(1, 7):
        dist.all_reduce(gradient)
        if step % 3:
            continue
        if FIXED or rank != 0 or step < 6:
            sync_steps(rank, 1 << 20)
        save_state({"rank": rank, "step": step, "text": "x" * (10 + rank)})
    dist.destroy_process_group()


main()
