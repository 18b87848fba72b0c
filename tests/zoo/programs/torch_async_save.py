"""A checkpoint is written in the background while training goes on: it has the weights of later steps."""
import os
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


class Saver:
    def __init__(self, folder):
        self.folder = folder

    def save(self, state, step):
        if FIXED:
            state = {name: value.clone() for name, value in state.items()}
        self.thread = threading.Thread(target=self.write, args=(state, step), name="saver")
        self.thread.start()  # PLACE

    def write(self, state, step):
        time.sleep(0.1)
        torch.save(state, os.path.join(self.folder, f"step_{step}.pt"))


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29550")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    weight = torch.ones(100)
    with tempfile.TemporaryDirectory() as folder:
        saver = Saver(folder)
        for step in range(1, 4):
            gradient = torch.full((100,), float(step))
            dist.all_reduce(gradient)
            weight -= 0.1 * gradient
            if step == 2 and dist.get_rank() == 0:
                saver.save({"weight": weight}, step)
        if dist.get_rank() == 0:
            saver.thread.join()
    dist.destroy_process_group()


main()
