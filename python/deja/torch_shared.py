"""Tensors that a spawned rank was given in shared memory, among what it is to run.

Their descriptors come from the parent, which is no rank: what the tensors held when the rank began is recorded, and given
back when the rank is replayed without that parent. What the parent or other ranks write there afterwards is not.
"""

import ctypes
import functools
import struct

from deja import engine, spawned

_KEY = b"multiprocessing: shared tensor "
_MOST = 64 << 20  # bytes of all of them together
_ALIAS = struct.Struct("<q")  # in front of the bytes: which of the tensors before it is the same one; -1: none


def install(module):
    """module: torch.multiprocessing.reductions."""
    mode = engine.mode()
    if mode == engine.RECORDING:
        module.rebuild_storage_fd = _recording(module.rebuild_storage_fd)
    elif mode == engine.REPLAYING:
        module.rebuild_storage_fd = _serving(module.rebuild_storage_fd)


def _recording(rebuild):
    made, left = [], _MOST

    @functools.wraps(rebuild)
    def record(cls, df, size):
        nonlocal left
        storage = rebuild(cls, df, size)
        if not spawned.is_taking_arguments():
            return storage
        alias = next((number for number, other in enumerate(made) if other.data_ptr() == storage.data_ptr()), -1)
        data = b""
        if alias < 0:
            if size > left:
                engine.not_recorded(
                    f"tensors of {_MOST >> 20} MiB and more that a spawned rank is given in shared memory: a replay of it "
                    "ends where it takes them; start the ranks with torchrun, or make the tensors in the ranks"
                )
                return storage
            left -= size
            data = ctypes.string_at(storage.data_ptr(), size)
        engine.store_call(spawned.FUNCTION, _KEY + b"%d" % len(made), lambda: _ALIAS.pack(alias) + data)
        made.append(storage)
        return storage

    return record


def _serving(rebuild):
    made = []

    @functools.wraps(rebuild)
    def serve(cls, df, size):
        if not spawned.is_taking_arguments():
            return rebuild(cls, df, size)
        value = engine.store_call(spawned.FUNCTION, _KEY + b"%d" % len(made), None)
        if value is None:
            return rebuild(cls, df, size)
        (alias,) = _ALIAS.unpack_from(value)
        file = spawned.file_of(value[_ALIAS.size :]) if alias < 0 else None
        made.append(made[alias] if alias >= 0 else cls._new_shared_fd_cpu(file, size))
        return made[-1]

    return serve
