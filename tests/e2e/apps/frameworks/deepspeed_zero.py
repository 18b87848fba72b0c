"""DeepSpeed on CPUs over gloo.

    deepspeed_zero.py STAGE
"""
import sys

import deepspeed
import job
import torch
import torch.distributed as dist


def main():
    deepspeed.init_distributed(dist_backend="gloo")
    rank = dist.get_rank()
    job.seed_torch(rank)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 4))
    engine, *_ = deepspeed.initialize(
        model=net,
        model_parameters=net.parameters(),
        optimizer=torch.optim.Adam(net.parameters(), 1e-3),
        config={
            "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 2,
            "zero_optimization": {"stage": int(sys.argv[1])},
            "zero_force_ds_cpu_optimizer": False,
        },
    )
    for step in range(12):
        rows = torch.randn(4, 16)
        loss = torch.nn.functional.cross_entropy(engine(rows), torch.randint(0, 4, (4,)))
        engine.backward(loss)
        engine.step()
        job.say(rank, f"step {step} loss {loss.item()!r}")
    with deepspeed.zero.GatheredParameters(list(engine.module.parameters())):
        job.say(rank, f"weights {job.digest_of_weights(engine.module)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
