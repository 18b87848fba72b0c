"""Tensors that a spawned rank was given in shared memory, among what it is to run.

Their descriptors come from the parent, which is no rank. The tensors' contents when the rank began are recorded, and
given back when the rank is replayed without that parent. What the parent or other ranks write there afterwards is not.
"""

import ctypes
import functools

from deja import engine
from deja.spawning import spawned

_KEY = b"multiprocessing: shared tensor "
_MOST = 64 << 20  # bytes of all of them together
_TOO_MUCH = (
    f"tensors of more than {_MOST >> 20} MiB that a spawned rank is given in shared memory: a replay of it ends where it takes "
    "them; start the ranks with torchrun, or make the tensors in the ranks"
)
_taken = 0  # tensors so far


def install(module):
    """module: torch.multiprocessing.reductions."""
    mode = engine.mode()
    if mode == engine.RECORDING:
        module.rebuild_storage_fd = _recording(module.rebuild_storage_fd)
    elif mode == engine.REPLAYING:
        module.rebuild_storage_fd = _serving(module.rebuild_storage_fd)


def _next_key():
    global _taken
    _taken += 1
    return _KEY + b"%d" % _taken


def _recording(rebuild):
    left = _MOST

    @functools.wraps(rebuild)
    def record(cls, df, size):
        nonlocal left
        storage = rebuild(cls, df, size)
        if spawned.is_taking_arguments():
            key = _next_key()
            left -= size
            if left >= 0:
                engine.store_call(spawned.FUNCTION, key, lambda: ctypes.string_at(storage.data_ptr(), size))
            else:
                engine.not_recorded(_TOO_MUCH, may_be=True)
        return storage

    return record


def _serving(rebuild):
    @functools.wraps(rebuild)
    def serve(cls, df, size):
        value = engine.store_call(spawned.FUNCTION, _next_key(), None) if spawned.is_taking_arguments() else None
        if value is None:
            if spawned.is_taking_arguments():
                engine.not_recorded(_TOO_MUCH)
            return rebuild(cls, df, size)
        return cls._new_shared_fd_cpu(spawned.file_of(value), size)

    return serve
