"""torch.compile with inductor, its pool of compiling processes, and DDP; the cache of compiled code is the run's own.

    inductor.py FOLDER
"""
import os
import sys

os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{sys.argv[1]}/inductor-{os.environ['RANK']}"

import job
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    job.seed_torch(rank)
    layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))
    model = torch.compile(torch.nn.parallel.DistributedDataParallel(layers))
    optimizer = torch.optim.AdamW(layers.parameters(), 1e-2)
    for step in range(6):
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        job.say(rank, f"step {step} loss {loss.item()!r}")
    job.say(rank, f"weights {job.digest_of_weights(layers)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
