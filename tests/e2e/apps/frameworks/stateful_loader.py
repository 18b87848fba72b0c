"""torchdata's StatefulDataLoader: two workers, its state saved in the middle of an epoch and given to another loader.

    stateful_loader.py FOLDER
"""
import sys
from pathlib import Path

import job
import torch
import torch.distributed as dist
from torch.utils.data import Dataset, DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader


class Noise(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return torch.randn(8) + index, index


def loader(rank):
    sampler = DistributedSampler(Noise(), num_replicas=2, rank=rank, shuffle=True)
    return StatefulDataLoader(Noise(), batch_size=6, sampler=sampler, num_workers=2, snapshot_every_n_steps=1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    job.seed_torch(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    state = Path(sys.argv[1]) / f"loader-{rank}.pt"
    first = loader(rank)
    for attempt, data in enumerate([first, None]):
        if data is None:
            data = loader(rank)
            data.load_state_dict(torch.load(state, weights_only=False))
        for step, (inputs, numbers) in enumerate(data):
            loss = model(inputs).square().mean()
            loss.backward()
            job.say(rank, f"pass {attempt} step {step} loss {loss.item()!r} rows {numbers.tolist()}")
            if attempt == 0 and step == 3:
                torch.save(data.state_dict(), state)
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
