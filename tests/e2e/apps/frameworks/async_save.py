"""torch.distributed.checkpoint.async_save in the training loop.

    async_save.py FOLDER [WORKERS]
"""
import sys

import job
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(16) + index, torch.tensor(float(index % 7))


def main():
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    job.seed_torch(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    group = dist.new_group(backend="gloo")  # the saving thread communicates while the loop does
    saved = None
    for step, (inputs, targets) in enumerate(DataLoader(Noise(), batch_size=8, shuffle=True, num_workers=workers)):
        optimizer.zero_grad()
        loss = ((model(inputs).squeeze(1) - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        if saved is not None:
            saved.result()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        saved = checkpoint.async_save(state, checkpoint_id=f"{sys.argv[1]}/{step}", process_group=group)
        job.say(rank, f"step {step} loss {loss.item()!r}")
    saved.result()
    job.say(rank, f"weights {job.digest_of_weights(model)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
