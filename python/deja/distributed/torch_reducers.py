"""The process group of a Reducer, DistributedDataParallel's part of C++, as a recording has it.

The Reducer hands a tensor on when the backward pass ends, and not before. So an operation that it issues there needs no
Work of Python's, which costs as much as its record. The end is recorded as the pass ends.
"""

from torch._C import _distributed_c10d as c10d

from deja import engine
from deja.distributed import torch_works
from deja.distributed.torch_groups import Recorded


class OfReducer(Recorded):
    """A group for a Reducer: all that it is and knows is that group's."""

    def __init__(self, group):
        c10d.ProcessGroup.__init__(self, group.rank(), group.size())
        self.__dict__ = group.__dict__

    _deja_recorded = staticmethod(torch_works.recorded_for_reducer)
    _deja_is_for_python = False


def install(distributed):
    """distributed: torch.distributed."""
    if engine.mode() != engine.RECORDING or not torch_works.CPP_KEEPS_WORKS:
        return
    real = distributed.Reducer

    class Reducer(real):
        def __init__(self, *args, **kwargs):
            self._deja_groups = []  # C++ alone does not keep them
            known = self._deja_known
            super().__init__(*map(known, args), **{name: known(value) for name, value in kwargs.items()})

        def _update_process_group(self, group):
            known = self._deja_known(group)
            super()._update_process_group(known)
            self._deja_groups = [known]  # C++ has let go of the one before

        def _deja_known(self, value):
            if not isinstance(value, Recorded):
                return value
            self._deja_groups.append(OfReducer(value))
            return self._deja_groups[-1]

    Reducer.__module__, Reducer.__qualname__ = real.__module__, real.__qualname__
    distributed.Reducer = Reducer
