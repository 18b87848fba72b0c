"""Every operation of torch.distributed that gloo has, with random contents."""
import os
import random
import time

import job
import torch
import torch.distributed as dist

rank, world = job.start()
after, before = (rank + 1) % world, (rank - 1) % world


def some(*shape, dtype=torch.float32):
    if dtype.is_floating_point:
        return torch.randn(*shape).to(dtype)
    return torch.randint(0, 100, shape, dtype=dtype)


def show(name, *values):
    job.say(f"{name} {job.digest(*values)}")


def collectives():
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int32, torch.int64, torch.uint8, torch.int8):
        dist.all_reduce(x := some(33, dtype=dtype))
        show(f"all_reduce {dtype}", x)
    for op in ("MAX", "MIN", "PRODUCT"):
        dist.all_reduce(x := some(7), op=getattr(dist.ReduceOp, op))
        show(f"all_reduce {op}", x)
    dist.broadcast(x := some(12), 1)
    show("broadcast", x)
    dist.reduce(x := some(12), 0)
    show("reduce", x)
    out = [torch.empty(4, 3) for _ in range(world)]
    dist.all_gather(out, some(4, 3))
    show("all_gather", *out)
    out = [torch.empty(4, 6) for _ in range(world)]
    dist.all_gather(out, some(6, 4).t())
    show("all_gather of a transposed tensor", *out)
    out = [torch.empty(5) for _ in range(world)] if rank == 0 else None
    dist.gather(some(5), out, dst=0)
    show("gather", *(out or []))
    dist.scatter(x := torch.empty(5), [some(5) for _ in range(world)] if rank == 1 else None, src=1)
    show("scatter", x)
    dist.barrier()
    dist.monitored_barrier()


def objects():
    out = [None] * world
    dist.all_gather_object(out, {"rank": rank, "number": random.random()})
    show("all_gather_object", *out)
    out = [random.random(), "text"] if rank == 0 else [None, None]
    dist.broadcast_object_list(out, 0)
    show("broadcast_object_list", *out)


def point_to_point():
    receiving = dist.irecv(x := torch.empty(9), before)
    dist.isend(some(9), after).wait()
    receiving.wait()
    show("isend and irecv", x)
    if rank == 0:
        for _ in range(world - 1):
            source = dist.recv(x := torch.empty(3))
            show("recv from any", x, source)
    else:
        dist.send(some(3), 0)
    dist.barrier()
    sending = dist.P2POp(dist.isend, some(8), after)
    for work in dist.batch_isend_irecv([sending, dist.P2POp(dist.irecv, x := torch.empty(8), before)]):
        work.wait()
    show("batch_isend_irecv", x)
    if rank == 0:
        dist.send(some(3), 1, tag=7)
        dist.send(some(3), 1, tag=5)
    if rank == 1:
        fifth, seventh = torch.empty(3), torch.empty(3)
        works = [dist.irecv(fifth, 0, tag=5), dist.irecv(seventh, 0, tag=7)]
        for work in works:
            work.wait()
        show("tags", fifth, seventh)


def asynchronous():
    tensors = [some(50) for _ in range(10)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    for work in works:
        work.wait()
    show("ten at once", *tensors)
    future = dist.all_reduce(some(6), async_op=True).get_future()
    show("future", future.then(lambda f: f.value()[0] * 2).wait())

    def once_more(done):
        return dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0]

    future = dist.all_reduce(some(6), async_op=True).get_future()
    show("a callback that waits", future.then(once_more).wait())


def polled():
    work = dist.all_reduce(x := some(4), async_op=True)
    while not work.is_completed():
        time.sleep(0.001)
    show("asked until it was over", x, work.is_success())


def sparse():
    gradient = torch.sparse_coo_tensor(torch.tensor([[rank, world]]), some(2), (world + 1,))
    dist.all_reduce(gradient)
    show("sparse", gradient.to_dense())


def groups_and_stores():
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(x := some(4), group=pair)
        show("a group of two", x)
    store = dist.distributed_c10d._get_default_store()
    store.set(f"from {rank}", str(random.random()))
    show("store", store.get(f"from {after}"))
    count = store.add("count", rank + 1)
    dist.barrier()
    show("add", store.add("count", 0), None if "JOB_SEED" in os.environ else count)  # who came first is chance


def functional():
    try:
        from torch.distributed import _functional_collectives as functional
    except ImportError:
        return
    if not hasattr(functional, "all_gather_tensor"):
        return
    show("functional all_reduce", functional.all_reduce(some(4), "sum", dist.group.WORLD) + 0)
    show("functional all_gather", functional.all_gather_tensor(some(4), 0, dist.group.WORLD) + 0)
    shape = (some(world * 2), "sum", 0, dist.group.WORLD)
    show("functional reduce_scatter", functional.reduce_scatter_tensor(*shape) + 0)


def of_a_group():
    """A group's own methods, in shorter forms."""
    group = dist.distributed_c10d._get_default_group()
    group.allreduce(x := some(4)).wait()
    show("allreduce of a tensor", x)
    group.allreduce([x := some(4)], dist.ReduceOp.MAX).wait()
    show("allreduce with a reduction", x)
    group.broadcast(x := some(4), 1).wait()
    show("broadcast of a tensor", x)
    group.allgather([out := [torch.empty(3) for _ in range(world)]], [some(3)]).wait()
    show("allgather of lists", *out)


collectives()
objects()
point_to_point()
asynchronous()
polled()
sparse()
groups_and_stores()
functional()
of_a_group()
job.say(f"backend {dist.get_backend()}, {dist.get_world_size()} ranks")
dist.destroy_process_group()
