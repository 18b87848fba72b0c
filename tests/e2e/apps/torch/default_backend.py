"""A job that leaves the backend to torch, for its group and for a mesh."""
import job
import torch
import torch.distributed as dist

dist.init_process_group()
job.say(f"{dist.get_backend()} {dist.get_backend_config()}")
mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
for group in (dist.group.WORLD, mesh.get_group()):
    drawn = torch.randn(3)
    dist.all_reduce(drawn, group=group)
    job.say(drawn.tolist())
dist.destroy_process_group()
