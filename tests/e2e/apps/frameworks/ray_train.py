"""Ray Train with two workers over gloo.

    ray_train.py FOLDER
"""
import sys

import ray
import ray.train
import ray.train.torch


def train(config):
    import job
    import torch

    rank = ray.train.get_context().get_world_rank()
    job.seed_torch(rank)
    model = ray.train.torch.prepare_model(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with open(f"{config['folder']}/rank-{rank}", "w", encoding="utf-8") as file:
        for step in range(10):
            rows = torch.randn(8, 16)
            loss = model(rows).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ray.train.report({"loss": loss.item()})
            file.write(f"rank {rank} step {step} loss {loss.item()!r}\n")
            job.say(rank, f"step {step} loss {loss.item()!r}")


def main():
    folder = sys.argv[1]
    here = __file__.rpartition("/")[0]
    ray.init(num_cpus=4, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": here}})
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={"folder": folder},
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(storage_path=folder, name="run"),
        torch_config=ray.train.torch.TorchConfig(backend="gloo"),
    )
    trainer.fit()
    ray.shutdown()


if __name__ == "__main__":
    main()
