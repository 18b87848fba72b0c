"""DistributedDataParallel (or, as the argument says, FullyShardedDataParallel) over NCCL, unseeded, with dropout and a
shuffled loader.

The parameters and their gradients are on the GPU; what needs kernels (the model, the optimizer) is done on the CPU, so
that devices of the simulated driver do."""
import os
import sys

import job
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

GPU = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
STEPS = 12


class OnTheHost(nn.Module):
    """Layers whose parameters are on the GPU, and are copied for each pass."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(32, 64), nn.Linear(64, 64), nn.Linear(64, 1)]).to(GPU)

    def forward(self, batch):
        batch = batch.cpu()
        for number, layer in enumerate(self.layers):
            if number > 0:
                batch = nn.functional.dropout(batch.relu(), 0.2)
            batch = nn.functional.linear(batch, layer.weight.cpu(), layer.bias.cpu())
        return batch


def average(group, bucket):
    work = dist.all_reduce(bucket.buffer(), op=dist.ReduceOp.AVG, group=group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def main():
    rank, _ = job.start()
    torch.cuda.set_device(GPU)
    if sys.argv[1:] == ["fsdp"]:
        model = FullyShardedDataParallel(OnTheHost(), device_id=GPU, sync_module_states=True, use_orig_params=True)
    else:
        model = DistributedDataParallel(OnTheHost(), bucket_cap_mb=0.01)
        model.register_comm_hook(None, average)
    mine = [p for p in model.parameters() if p.numel() > 0]  # FSDP: this rank's part of them
    masters = [p.detach().cpu() for p in mine]
    optimizer = torch.optim.Adam(masters, lr=1e-2)
    data = TensorDataset(torch.randn(STEPS * 8, 32), torch.randn(STEPS * 8, 1))
    for step, (batch, wanted) in enumerate(DataLoader(data, batch_size=8, shuffle=True)):
        loss = nn.functional.mse_loss(model(batch), wanted)
        loss.backward()
        for master, parameter in zip(masters, mine):
            master.grad = parameter.grad.cpu()
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, mine):
                parameter.copy_(master)
        model.zero_grad()
        job.say(f"step {step} loss {loss.item().hex()}")
    job.say(f"weights {job.digest(*masters)}")
    dist.destroy_process_group()


main()
