"""Every operation of torch.distributed that its NCCL backend has, with random contents; one part of them a run.

No kernel of torch's is needed: tensors are made on the CPU and copied, so that devices of the simulated driver do."""
import os
import random
import sys

import job
import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager

GPU = torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def some(*shape, dtype=torch.float32):
    values = torch.randn(*shape).to(dtype) if dtype.is_floating_point else torch.randint(0, 100, shape, dtype=dtype)
    return values.to(GPU)


def nothing(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device=GPU)


def several(count, *shape):
    return [nothing(*shape) for _ in range(count)]


def show(name, *values):
    job.say(f"{name} {job.digest(*values)}")


def reductions():
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8, torch.int8):
        dist.all_reduce(x := some(33, dtype=dtype))
        show(f"all_reduce {dtype}", x.cpu().double())
    for op in ("MAX", "MIN", "PRODUCT", "AVG"):
        dist.all_reduce(x := some(7), op=getattr(dist.ReduceOp, op))
        show(f"all_reduce {op}", x)
    dist.all_reduce(x := some(7), op=dist._make_nccl_premul_sum(0.25))
    show("all_reduce PREMUL_SUM by a number", x)
    dist.all_reduce(x := some(7), op=dist._make_nccl_premul_sum(some(1)))
    show("all_reduce PREMUL_SUM by a tensor", x)
    dist.reduce(x := some(12), 0)
    if rank == 0:
        show("reduce", x)
    dist.reduce_scatter(x := nothing(5), [some(5) for _ in range(world)])
    show("reduce_scatter", x)
    dist.reduce_scatter_tensor(x := nothing(5), some(5 * world), op=dist.ReduceOp.AVG)
    show("reduce_scatter_tensor", x)


def copies():
    dist.broadcast(x := some(12), 1)
    show("broadcast", x)
    dist.all_gather(out := several(world, 4, 3), some(4, 3))
    show("all_gather", *out)
    dist.all_gather_into_tensor(x := nothing(4 * world), some(4))
    show("all_gather_into_tensor", x)
    out = several(world, 5) if rank == 0 else None
    dist.gather(some(5), out, dst=0)
    show("gather", *(out or []))
    dist.scatter(x := nothing(5), [some(5) for _ in range(world)] if rank == 1 else None, src=1)
    show("scatter", x)
    dist.all_to_all(out := several(world, 3), [some(3) for _ in range(world)])
    show("all_to_all", *out)
    dist.all_to_all_single(x := nothing(4 * world), some(4 * world))
    show("all_to_all_single", x)
    # Row r of column c has 1 + r + c elements.
    dist.all_to_all_single(x := nothing(sum(1 + rank + peer for peer in range(world))), some(sum(1 + rank + peer for peer in range(world))),
                           [1 + rank + peer for peer in range(world)], [1 + rank + peer for peer in range(world)])
    show("all_to_all_single, unequal", x)
    dist.barrier()


def point_to_point():
    after, before = (rank + 1) % world, (rank - 1) % world
    if rank % 2 == 0:
        dist.send(some(9), after)
        dist.recv(x := nothing(9), before)
    else:
        dist.recv(x := nothing(9), before)
        dist.send(some(9), after)
    show("send and recv", x)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, some(6), after), dist.P2POp(dist.irecv, x := nothing(6), before)])
    for work in works:
        work.wait()
    show("batch_isend_irecv", x)


def asynchronous():
    works = [(dist.all_reduce(x := some(1000 + n), async_op=True), x) for n in range(4)]
    for work, _ in works:
        work.wait()
    show("async_op", *(x for _, x in works))
    side = torch.cuda.Stream()
    x = some(2000)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work = dist.all_reduce(x, async_op=True)
    work.wait()  # the current stream waits, this thread does not
    show("waited for on another stream", x)
    future = dist.all_reduce(x := some(8), async_op=True).get_future()
    show("future", *future.then(lambda done: [t.cpu() for t in done.value()]).wait())
    work = dist.all_reduce(x := some(8), async_op=True)
    while not work.is_completed():
        pass
    show("polled", x)


def coalesced():
    with _coalescing_manager(device=GPU, async_ops=True) as made:
        reduced = [some(3 + n) for n in range(3)]
        for x in reduced:
            dist.all_reduce(x)
    made.wait()
    show("coalesced all_reduce", *reduced)
    with _coalescing_manager(device=GPU):
        gathered = [nothing(4 * world) for _ in range(2)]
        for x in gathered:
            dist.all_gather_into_tensor(x, some(4))
    show("coalesced all_gather_into_tensor", *gathered)
    with _coalescing_manager(device=GPU):
        scattered = [nothing(4) for _ in range(2)]
        for x in scattered:
            dist.reduce_scatter_tensor(x, some(4 * world))
    show("coalesced reduce_scatter_tensor", *scattered)


def objects():
    dist.all_gather_object(out := [None] * world, {"rank": rank, "number": random.random(), "filler": "x" * (5 + 20 * rank)})
    show("all_gather_object", *out)
    out = [None] * world if rank == 1 else None
    dist.gather_object({"of": rank, "number": random.random()}, out, dst=1)
    show("gather_object", *(out or []))
    dist.scatter_object_list(out := [None], [random.random() for _ in range(world)] if rank == 0 else None, src=0)
    show("scatter_object_list", *out)


def groups():
    all_again = dist.new_group()
    dist.all_reduce(x := some(5), group=all_again)
    show("new_group", x)
    alone = [dist.new_group([one]) for one in range(world)][rank]
    dist.all_reduce(x := some(5), group=alone)
    show("new_group of one", x)
    reverse = dist.new_group(list(range(world))[::-1], use_local_synchronization=True)
    dist.broadcast(x := some(5), 1, group=reverse)
    show("new_group, synchronised by itself", x)
    dist.destroy_process_group(all_again)
    dist.all_reduce(x := some(5))
    show("after a group has gone", x)


def split():
    half = dist.split_group(split_ranks=[[n] for n in range(world)])
    dist.all_reduce(x := some(5), group=half)
    show("split_group", x)
    whole = dist.split_group(split_ranks=[list(range(world))])
    dist.all_reduce(x := some(5), group=whole)
    dist.reduce_scatter_tensor(y := nothing(2), some(2 * world), group=whole)
    show("split_group of all", x, y)
    x = some(6) if rank == 0 else nothing(6)
    if rank == 0:
        dist.send(x, 1, group=whole)
    else:
        dist.recv(x, 0, group=whole)
    show("send and recv in it", x)
    first = dist.new_group([0])  # split off the communicator that is there; the others take part without being in it
    if rank == 0:
        dist.all_reduce(x := some(5), group=first)
        show("new_group by ncclCommSplit", x)


def memory():
    backend = dist.distributed_c10d._get_default_group()._get_backend(GPU)
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = nothing(1 << 10)
    backend.register_mem_pool(pool)
    x.copy_(torch.randn(1 << 10))
    dist.all_reduce(x)
    show("all_reduce in registered memory of ncclMemAlloc", x)
    backend.deregister_mem_pool(pool)


PARTS = {f.__name__: f for f in (reductions, copies, point_to_point, asynchronous, coalesced, objects, groups, split, memory)}
NEED_DEVICE_ID = ("split", "memory")

rank, world = job.start(**({"device_id": GPU} if sys.argv[1] in NEED_DEVICE_ID else {}))
torch.cuda.set_device(GPU)
for part in sys.argv[1:]:
    PARTS[part]()
dist.destroy_process_group()
os.write(1, f"rank {rank} ends\n".encode())
