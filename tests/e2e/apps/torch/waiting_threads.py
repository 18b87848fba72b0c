"""A data-parallel job with a pool of OpenMP threads, and a thread of Python's that adds up the losses."""
import queue
import threading

import job
import torch
import torch.distributed as dist
from torch import nn

STEPS = 12


def main():
    job.start()
    torch.set_num_threads(2)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses, totals = queue.Queue(), queue.Queue()

    def add_up():
        total = 0.0
        for loss in iter(losses.get, None):
            total += loss
            totals.put(total)

    thread = threading.Thread(target=add_up)
    thread.start()
    for step in range(STEPS):
        loss = model(torch.randn(512, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.put(loss.item())
        job.say(f"step {step} losses {totals.get()!r}")
    losses.put(None)
    thread.join()
    job.say_weights(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
