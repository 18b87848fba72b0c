"""The files of a folder are read in the order in which the folder has them, which is another one after each copy."""
import os
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def load(folder):
    names = [entry.name for entry in os.scandir(folder)]  # PLACE
    if FIXED:
        names.sort()
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            yield torch.tensor(list(file.read()), dtype=torch.float32)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29555")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for sample in load(os.environ["ZOO_DATA"]):
        optimizer.zero_grad()
        model(sample).pow(2).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    dist.destroy_process_group()


main()
