"""Another process listens where the ranks are to meet: rank 0 cannot, and the others talk to the stranger."""
import datetime
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ["MASTER_PORT"] = "29553" if FIXED else os.environ["TAKEN_PORT"]
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))  # PLACE
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


main()
