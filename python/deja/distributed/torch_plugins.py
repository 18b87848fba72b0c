"""Groups of backends that torch.distributed has made by a function: plug-ins' creators, ProcessGroupMPI.create.

A replay never calls these functions: the library behind them need not be there, nor the launcher that it would ask.
"""

import collections
import sys

from torch._C import _distributed_c10d as c10d

from deja import engine
from deja.distributed import torch_groups

_mpi_groups = collections.Counter()  # that this process has asked for, by their ranks


def group_of(backend, store, rank, size, timeout, make):
    """make(): the backend's own group."""
    name = torch_groups.name_of(store)
    is_replay = engine.mode() == engine.REPLAYING
    base = torch_groups.Served if is_replay else torch_groups.Recorded
    kind = _class_of(backend, base)
    group = base.__new__(kind)
    if is_replay:
        base.__init__(group, backend, rank, size, name, timeout, store)
    else:
        base.__init__(group, backend, store, rank, size, name, make, timeout)
    return group


def _class_of(backend, base):
    """Newer torch makes gloo's groups by a creator, too."""
    kind = getattr(sys.modules["torch.distributed.distributed_c10d"], "ProcessGroupGloo", None) if backend == "gloo" else None
    return kind if isinstance(kind, type) and issubclass(kind, base) else base


def creator(backend, plugin):
    """What torch.distributed is to call instead of the plug-in's creator."""
    make = plugin.creator_fn

    def simple(store, rank, size, timeout):
        return group_of(backend, store, rank, size, timeout, lambda: make(store, rank, size, timeout))

    def extended(given, options):
        place = given.store, given.group_rank, given.group_size
        return group_of(backend, *place, given.timeout, lambda: make(given, options))

    return extended if plugin.extended_api else simple


class Mpi:
    """Stands for ProcessGroupMPI, which learns from MPI what its rank is, and whether it is in the group at all."""

    def __init__(self, real):
        self._real = real

    def create(self, ranks):
        members = ",".join(map(str, ranks))
        _mpi_groups[members] += 1
        name = f"mpi/{members}/{_mpi_groups[members]}"
        made = None

        def place():
            nonlocal made
            made = self._real.create(ranks)
            return b"%d of %d" % (made.rank(), made.size()) if made else b"none"

        answer = engine.store_call("c10d_store_get", b"deja/" + name.encode(), place)
        if answer is None:
            raise RuntimeError(f"deja: the recording has no group of MPI for the ranks {ranks}")
        if answer == b"none":
            return None
        rank, _, size = answer.partition(b" of ")
        if made is None:
            return torch_groups.Served("mpi", int(rank), int(size), name)
        return torch_groups.Recorded("mpi", c10d.Store(), int(rank), int(size), name, lambda: made)
