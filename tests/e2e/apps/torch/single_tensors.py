"""The operations on single tensors, by the names that torch has for them since 2.13, what a group says of itself, and
a split group."""
import random

import job
import torch
import torch.distributed as dist

rank, world = job.start()
group = dist.group.WORLD
backend = group._get_backend(torch.device("cpu"))


def show(name, *values):
    job.say(f"{name} {job.digest(*values)}")


dist.all_gather_into_tensor(x := torch.empty(4 * world), torch.randn(4))
show("all_gather_into_tensor", x)
dist.reduce_scatter_tensor(x := torch.empty(3), torch.randn(3 * world))
show("reduce_scatter_tensor", x)
dist.all_to_all_single(x := torch.empty(2 * world), torch.randn(2 * world))
show("all_to_all_single", x)
with dist._coalescing_manager(group):
    for x in (xs := [torch.randn(3), torch.randn(2)]):
        dist.all_reduce(x)
show("coalesced", *xs)
objects = [None] * world
dist.all_gather_object(objects, random.random())
show("all_gather_object", *objects)
for what in ("supports_splitting", "supports_coalescing", "supports_window"):
    job.say(f"{what} {getattr(backend, what)}")
job.say(f"{backend.get_error()} {group.supports_reconfigure} {sorted(map(str, group._device_types))}")
try:
    backend.memory_stats()
except RuntimeError as error:
    job.say(str(error).splitlines()[0])
part = dist.split_group(split_ranks=[[each] for each in range(world)])
dist.all_reduce(x := torch.randn(3), group=part)
show(f"split into {dist.get_world_size(part)}", x)
dist.destroy_process_group()
