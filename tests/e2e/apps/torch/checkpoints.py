"""A data-parallel job whose state is registered for checkpoints: dropout, a shuffled loader, epochs, a scheduler, and
what MODE asks for: words that "+" separates."""
import os

import deja
import deja.torch
import job
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from train import Rows, wrap


def main():
    modes = os.environ.get("MODE", "ddp").split("+")
    rank, size = job.start()
    layers = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    model = wrap(layers, modes)
    if "zero" in modes:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    options = {"shuffle": True}
    if "sampler" in modes:
        options = {"sampler": DistributedSampler(Rows(), size, rank)}
    if {"workers", "persistent"} & set(modes):
        # The other strategy asks for entropy with each batch, in the order in which they arrive.
        torch.multiprocessing.set_sharing_strategy("file_system")
        options["num_workers"] = 2
        options["persistent_workers"] = "persistent" in modes
    loader = DataLoader(Rows(), batch_size=8, **options)
    progress = {"step": 0, "sum": 0.0}
    deja.torch.watch(model, optimizer, scheduler, progress, every=4, gradients="accumulate" in modes)
    for epoch in deja.epochs(range(int(os.environ.get("EPOCHS", "3")))):
        if "sampler" in modes:
            loader.sampler.set_epoch(epoch)
        for rows, labels in deja.steps(loader):
            accumulates = "accumulate" in modes and progress["step"] % 3 != 2
            with model.no_sync() if accumulates else torch.enable_grad():
                loss = F.cross_entropy(model(rows), labels)
                loss.backward()
            if not accumulates:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
            progress["sum"] += loss.item()
            job.say(f"epoch {epoch} step {progress['step']} loss {loss.item()!r}")
            progress["step"] += 1
        total = torch.tensor(progress["sum"])
        dist.all_reduce(total)
        job.say(f"epoch {epoch} total {total.item()!r}")
    job.say_weights(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
