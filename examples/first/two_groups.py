"""Two groups of the same ranks. One rank uses them in the other order in step 12, and the job hangs."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
gradients, metrics = dist.new_group(), dist.new_group()


def log(value):
    dist.all_reduce(value, group=metrics)


def average(gradient):
    dist.all_reduce(gradient, group=gradients)


for step in range(20):
    torch.manual_seed(step * 10 + rank)
    gradient, loss = torch.randn(100), torch.rand(1)
    if rank == 0:
        print("step", step, flush=True)
    if step == 12 and rank == 1:
        log(loss)  # the bug: before the gradients
        average(gradient)
    else:
        average(gradient)
        log(loss)
print("rank", rank, "is done")
