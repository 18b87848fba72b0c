"""The loss is summed while the next thing is computed, and changed before the sum is there."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29551")
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    for step in range(5):
        gradient = torch.full((1 << 16,), float(step))
        work = dist.all_reduce(gradient, async_op=True)  # PLACE
        if FIXED:
            work.wait()
            gradient.div_(world)
        else:
            gradient.div_(world)
            work.wait()
    dist.destroy_process_group()


main()
