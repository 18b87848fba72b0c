"""Three steps over NCCL. In the second one rank 1 does something else instead of its last collective."""
import datetime
import os
import sys
import time

import deja
import job
import torch
import torch.distributed as dist

GPU = torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def reduced(*values):
    x = torch.tensor(values).to(GPU)
    dist.all_reduce(x)
    return x.cpu()


rank, world = job.start()
torch.cuda.set_device(GPU)
for step in deja.steps(range(1, 4)):
    if step == 2:  # by now both are there
        dist.group.WORLD._get_backend(GPU)._set_default_timeout(datetime.timedelta(seconds=5))
    job.say(f"step {step}: {job.digest(reduced(*torch.rand(5)))}")
    if step == 2 and rank == 1:
        time.sleep(3600 if sys.argv[1] == "absent" else 0)
        os._exit(3)
    job.say(f"step {step}: {job.digest(reduced(*torch.rand(7)))}")
