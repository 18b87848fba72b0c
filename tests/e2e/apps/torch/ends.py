"""Two ranks; how the last one ends is the argument. Steps are named."""
import ctypes
import datetime
import os
import signal
import sys
import time

import deja
import job
import torch
import torch.distributed as dist

WHAT = sys.argv[1]


def end(rank):
    if WHAT == "terminate":  # as after an uncaught exception of C++
        ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev()
    elif WHAT == "kill":  # as when memory runs out
        os.kill(os.getpid(), signal.SIGKILL)
    elif WHAT == "absent":
        time.sleep(4)
        sys.exit(0)


def main():
    rank, size = job.start()
    for step in range(3):
        deja.step(step)
        dist.all_reduce(torch.ones(3))
        job.say(f"step {step}")
        if step == 2 and rank == size - 1:
            end(rank)
    if WHAT == "absent":
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=2))
    dist.barrier()


main()
