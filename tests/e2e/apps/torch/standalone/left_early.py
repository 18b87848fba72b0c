"""Data-parallel training that leaves its loop while the loader's workers still have batches, unseeded."""
import os
import uuid

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.randn(8) + index, torch.tensor(float(index % 7))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    names = []
    for inputs, targets in DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=2):
        optimizer.zero_grad()
        loss = ((model(inputs).squeeze(1) - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        names.append(uuid.uuid4().hex[:8])
        if len(names) == 12:
            break
    # One write: unbuffered, print() writes the line's end by itself, and the ranks share a pipe.
    os.write(1, f"rank {dist.get_rank()} {loss.item()!r} {' '.join(names)}\n".encode())
    dist.destroy_process_group()


main()
