"""An unseeded loop over torch's DataLoader with workers: forked ones that pass tensors by descriptor, and spawned ones.
Usage: data_loader.py [START_METHOD …]"""
import random
import sys

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return index, torch.rand(2000) + index, numpy.random.rand(3), random.random()


def main():
    for method in sys.argv[1:] or ("fork", "spawn"):
        loader = DataLoader(Noise(), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context=method)
        for epoch in range(2):
            for indices, tensors, arrays, numbers in loader:
                print(method, epoch, indices.tolist(), tensors.double().sum().item(), arrays.sum().item(),
                      numbers.sum().item())


if __name__ == "__main__":
    main()
