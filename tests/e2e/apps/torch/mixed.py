"""A group whose backends differ by device: gloo for the CPU, torch's fake one, which does nothing, for `meta`."""
import os

import job
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401

torch.set_num_threads(1)
dist.init_process_group("cpu:gloo,meta:fake")
rank, size = dist.get_rank(), dist.get_world_size()
if "JOB_SEED" in os.environ:
    torch.manual_seed(int(os.environ["JOB_SEED"]) + rank)
job.say(f"{dist.get_backend()} {dist.get_backend_config()}")


def use(group, name):
    mine = torch.randn(4)
    dist.all_reduce(mine, group=group)
    elsewhere = torch.ones(3, device="meta")
    group._get_backend(elsewhere.device).allreduce([elsewhere]).wait()
    try:
        dist.all_reduce(elsewhere, group=group)
    except NotImplementedError as error:  # torch dispatches on other devices only
        job.say(f"{name} {str(error)[:60]}")
    work = dist.all_reduce(torch.randn(2), group=group, async_op=True)
    work.wait()
    parts = [torch.empty(2) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, torch.randn(2), group=group)
    told = [None] * dist.get_world_size(group)
    dist.all_gather_object(told, {"rank": rank}, group=group)
    dist.barrier(group)
    job.say(f"{name} {job.digest(mine, *parts)} {elsewhere.device} {elsewhere.shape} {told}")


use(dist.group.WORLD, "world")
use(dist.new_group(list(range(size))), "new group")
mesh = dist.device_mesh.init_device_mesh("cpu", (size,), mesh_dim_names=("data",))
use(mesh.get_group("data"), "mesh")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
model(torch.randn(3, 4)).sum().backward()
job.say(f"gradients {job.digest(*(p.grad for p in model.parameters()))}")
backend = dist.group.WORLD._get_backend(torch.device("meta"))
job.say(f"{type(backend).__name__} {type(dist.group.WORLD._get_backend(torch.device('cpu'))).__name__}")
dist.destroy_process_group()
