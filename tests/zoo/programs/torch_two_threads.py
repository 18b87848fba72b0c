"""A thread that saves in the background uses the default group, and so does the main thread: which comes first is chance."""
import os
import sys
import threading
import time

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def save(rank, step):
    if step == 4 and rank == 1:
        time.sleep(0.3)
    parts = [torch.zeros(2) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, torch.ones(2))  # PLACE


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29547")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(6):
        saver = threading.Thread(target=save, args=(rank, step), name="saver")
        saver.start()
        if FIXED:
            saver.join()
        else:
            time.sleep(0.1)
        dist.barrier()
        saver.join()
    dist.destroy_process_group()


main()
