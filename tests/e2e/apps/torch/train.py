"""A data-parallel job with dropout, shuffling, and what MODE asks for besides: words that "+" separates."""
import contextlib
import os
import random
import sys

import job
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


KEPT = []  # as long as the interpreter is there


class Rows(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        return torch.randn(32) + i, i % 10


class Files(Dataset):
    """A file of 32 floats for each row, in the folder ROWS."""

    def __len__(self):
        return len(os.listdir(os.environ["ROWS"]))

    def __getitem__(self, i):
        with open(os.path.join(os.environ["ROWS"], str(i)), "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.float32) + torch.randn(32), i % 10


def wrap(model, modes):
    if "fsdp2" in modes:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(job.DEVICE.type, (dist.get_world_size(),))
        for layer in (model[0], model[3]):
            fully_shard(layer, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    if "fsdp1" in modes:
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, device_id=torch.device("cuda", 0) if job.DEVICE.type == "cuda" else job.DEVICE)
    parallel = nn.parallel.DistributedDataParallel(model)
    if "graphs" in modes:  # on a GPU its steps are CUDA graphs
        return torch.compile(parallel, mode="reduce-overhead")
    return torch.compile(parallel, backend="aot_eager") if "compiled" in modes else parallel


def main():
    modes = os.environ.get("MODE", "ddp").split("+")
    rank, _ = job.start()
    layers = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    model = wrap(layers.to(job.DEVICE), modes)
    if "zero" in modes:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    else:
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    fails = "raise" in modes or "restart" in modes and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    fails_at = random.randrange(3, 10) if fails else -1
    loader = DataLoader(Files() if "files" in modes else Rows(), batch_size=8, shuffle=True,
                        num_workers=2 if {"workers", "persistent", "files"} & set(modes) else 0, persistent_workers="persistent" in modes)
    KEPT.append(loader)
    step = 0
    for _ in range(2):
        for rows, labels in loader:
            if step == fails_at and rank == 1:
                raise ValueError(f"the labels of step {step} make no sense")
            accumulates = "accumulate" in modes and step % 2 == 0
            with model.no_sync() if accumulates else contextlib.nullcontext():
                loss = F.cross_entropy(model(rows.to(job.DEVICE)), labels.to(job.DEVICE))
                loss.backward()
            if not accumulates:
                optimizer.step()
                optimizer.zero_grad()
            job.say(f"step {step} loss {loss.item()!r}")
            step += 1
    job.say_weights(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
