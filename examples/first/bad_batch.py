"""A classifier in data parallel. A worker of the loader now and then gives a label that is none."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        row = torch.randn(32, generator=torch.Generator().manual_seed(i))
        label = int(row.argmax() * 10 // 31)  # the bug: 10 where the last element is the greatest
        return row, label


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    sampler = torch.utils.data.DistributedSampler(Rows())
    for rows, labels in DataLoader(Rows(), batch_size=8, sampler=sampler, num_workers=2):
        loss = F.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("rank", dist.get_rank(), loss.item())


if __name__ == "__main__":
    main()
