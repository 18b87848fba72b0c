"""A job over a backend of Python's: a plug-in whose collectives go over a store or over a gloo of its own. Or one that
stands for torch's MPI or UCC, as BACKEND asks. Sums are in the order of the ranks. All but one line has the seed
JOB_SEED.
"""
import atexit
import ctypes
import ctypes.util
import datetime
import os
import sys
import threading

import job
import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

SEED = os.environ.get("JOB_SEED", "5")
# Before 2.9 C++ (DDP) keeps only its own half of a Work of Python's, and waits for ever.
WORKS_OF_PYTHON = torch.__version__ >= "2.9"


class Done(dist._Work):
    """A Work of Python's, with what it waits for."""

    def __init__(self, finish, outputs):
        super().__init__()
        self._finish, self._outputs = finish, outputs

    def wait(self, timeout=None):
        if self._finish is not None:
            self._finish()
            self._finish = None
        return True

    def is_completed(self):
        return self._finish is None

    def is_success(self):
        return self._finish is None

    def get_future(self):
        future = torch.futures.Future()
        self.wait()
        future.set_result(self._outputs)
        return future


class ByStore(dist.ProcessGroup):
    """What each rank has goes through the store, on a thread of the group's own; results are there after wait()."""

    def __init__(self, store, rank, size):
        super().__init__(rank, size)
        self._store, self._rank, self._size, self._number = store, rank, size, 0

    def getBackendName(self):
        return "by store"

    def limit(self):
        return 17

    def shift(self, tensor):
        tensor.add_(self._rank)

    def _exchange(self, mine, then, outputs):
        self._number += 1
        number, failures = self._number, []
        # Not on the thread: a store that waits for one key keeps others waiting.
        self._store.set(f"{number}/{self._rank}", b"" if mine is None else mine.numpy().tobytes())

        def of(rank):
            data = bytearray(self._store.get(f"{number}/{rank}"))
            return torch.frombuffer(data, dtype=mine.dtype).view(mine.shape) if data else None

        ended = torch.futures.Future()

        def work():
            try:
                then([of(rank) for rank in range(self._size)])
                ended.set_result(outputs)
            except Exception as error:
                failures.append(error)
                ended.set_exception(error)

        thread = threading.Thread(target=work)
        thread.start()

        def finish():
            thread.join()
            if failures:
                raise failures[0]

        return Done(finish, outputs) if WORKS_OF_PYTHON else torch._C._distributed_c10d._create_work_from_future(ended)

    def allreduce(self, tensors, opts=None):
        def then(all_of_them):
            with torch.no_grad():
                tensors[0].copy_(torch.stack(all_of_them).sum(0))

        return self._exchange(tensors[0].detach(), then, tensors)

    def broadcast(self, tensors, opts=None):
        def then(all_of_them):
            with torch.no_grad():
                tensors[0].copy_(all_of_them[opts.rootRank])

        return self._exchange(tensors[0].detach(), then, tensors)

    def allgather(self, outputs, inputs, opts=None):
        def then(all_of_them):
            for output, value in zip(outputs[0], all_of_them):
                output.copy_(value)

        return self._exchange(inputs[0].detach(), then, outputs)

    def all_gather_single(self, output, value, opts=None):
        def then(all_of_them):
            output.copy_(torch.cat([each.reshape(-1) for each in all_of_them]).view(output.shape))

        return self._exchange(value.detach(), then, [output])

    def barrier(self, opts=None):
        return self._exchange(None, lambda _: None, [])

    def send(self, tensors, dst, tag=0):
        raise RuntimeError("this backend sends nothing")


class OverGloo(ByStore):
    """The same by groups of gloo that it makes itself, as late as it needs them."""

    _gloo = None

    def _inner(self):
        if self._gloo is None:
            store = dist.PrefixStore("inner", self._store)
            self._gloo = dist.ProcessGroupGloo(store, self._rank, self._size, timeout=datetime.timedelta(minutes=1))
        return self._gloo

    def allreduce(self, tensors, opts=None):
        return self._inner().allreduce(tensors, opts or dist.AllreduceOptions())

    def broadcast(self, tensors, opts=None):
        return self._inner().broadcast(tensors, opts)

    def allgather(self, outputs, inputs, opts=None):
        return self._inner().allgather(outputs, inputs, opts or torch._C._distributed_c10d.AllgatherOptions())

    def all_gather_single(self, output, value, opts=None):
        return self._inner().all_gather_single(output, value, opts or torch._C._distributed_c10d.AllgatherOptions())

    def barrier(self, opts=None):
        return self._inner().barrier(opts or dist.BarrierOptions())


class Mpi:
    """Stands for torch's ProcessGroupMPI in a torch without it: ranks and their number are known to the launcher
    alone."""

    _count = 0

    @classmethod
    def create(cls, ranks):
        cls._count += 1
        known = os.environ
        if "OMPI_COMM_WORLD_RANK" in known:
            if cls._count == 1:  # as the real one does
                ctypes.CDLL(ctypes.util.find_library("mpi"), ctypes.RTLD_GLOBAL)
                mpi = ctypes.CDLL(None)  # finds what a library that is linked to it finds
                mpi.MPI_Init(None, None)
                atexit.register(mpi.MPI_Finalize)
            rank, size = int(known["OMPI_COMM_WORLD_RANK"]), int(known["OMPI_COMM_WORLD_SIZE"])
        else:
            rank, size = int(known["RANK"]), int(known["WORLD_SIZE"])
        if ranks and rank not in ranks:
            return None
        store = dist.PrefixStore(f"{cls._count}:{ranks}", dist.FileStore(os.environ["MPI_FILE"], -1))
        return ByStore(store, ranks.index(rank) if ranks else rank, len(ranks) or size)


class Ucc(ByStore):
    def __init__(self, store, rank, size, timeout):
        super().__init__(store, rank, size)


def simple(store, rank, size, timeout):
    return {"store": ByStore, "gloo": OverGloo}[os.environ["BACKEND"]](store, rank, size)


def extended(options, given):
    return simple(options.store, options.group_rank, options.group_size, options.timeout)


def start():
    kind = os.environ["BACKEND"]
    torch.set_num_threads(1)
    if kind == "ucc":
        c10d.ProcessGroupUCC, c10d._UCC_AVAILABLE = Ucc, True
        return dist.init_process_group("ucc")
    if kind == "mpi":
        c10d.ProcessGroupMPI, c10d._MPI_AVAILABLE = Mpi, True
        return dist.init_process_group("mpi")
    is_extended = "EXTENDED" in os.environ
    devices = {"devices": ["cpu"]} if hasattr(c10d, "BackendConfig") else {}
    dist.Backend.register_backend("own", extended if is_extended else simple, extended_api=is_extended, **devices)
    dist.init_process_group(os.environ.get("CONFIG", "own"))


def use(group, name, drawn=b""):
    size = dist.get_world_size(group)
    dist.all_reduce(x := torch.randn(5), group=group)
    dist.broadcast(y := torch.randn(3), 0, group=group)
    parts = [torch.empty(2, 3) for _ in range(size)]
    dist.all_gather(parts, torch.randn(3, 2).t(), group=group)
    several = [torch.randn(4) for _ in range(3)]
    for work in [dist.all_reduce(z, group=group, async_op=True) for z in several]:
        work.wait()
    dist.barrier(group)
    told = [None] * size
    dist.all_gather_object(told, drawn, group=group)
    job.say(f"{name} {job.digest(x, y, *parts, *several)} {told}")


def main():
    start()
    torch.manual_seed(int(SEED) + dist.get_rank())
    use(dist.group.WORLD, "all")
    try:
        dist.send(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size())
    except RuntimeError as error:
        job.say(f"{type(error).__name__} {str(error).splitlines()[0]}")
    pair = dist.new_group([0, 1])
    if dist.get_rank() < 2:
        use(pair, "two")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Dropout(0.3)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 6)).square().sum()
        loss.backward()
        optimizer.step()
        job.say(f"step {step} {loss.item()!r}")
    job.say_weights(model)
    job.say(f"{dist.get_backend()} {dist.get_world_size()}")
    torch.seed()
    use(dist.group.WORLD, "unseeded", os.urandom(2))
    if "LIMIT" in os.environ:
        job.say(f"limit {dist.group.WORLD.limit()}")
    if "SHIFT" in os.environ:
        dist.group.WORLD.shift(x := torch.ones(2))
        job.say(f"shifted {x.tolist()}")
    if os.environ["BACKEND"] != "mpi":  # rank 0 has the store, and goes last
        store = c10d._get_default_store()
        store.set(f"{dist.get_rank()} is done", "")
        if dist.get_rank() == 0:
            store.wait([f"{rank} is done" for rank in range(dist.get_world_size())])
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
