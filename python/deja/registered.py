"""State that is part of each checkpoint: include/deja.h's registrations, for Python."""

import ctypes
import sys
import traceback

from deja import engine

_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_SAVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_LOAD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

_held = {}  # by name: the callbacks, which Deja's library calls
_tensors = set()  # names


class DoesNotFit(Exception):
    """What a load() raises to say why it could not."""


def tensor(name, address, shape, dtype):
    """A dense tensor in host memory, which stays where it is until it is registered again under its name."""
    extents = tuple(shape) or (1,)
    _tensors.add(name)
    engine.register_tensor(name, address, extents, dtype)


def callbacks(name, save, load):
    """save() returns runs of memory, (address, size); load(bytes) raises when it cannot."""

    def call_save(_user, write, sink):
        try:
            hand_over = _WRITE(write)
            for address, size in save():
                hand_over(sink, address, size)
        except Exception:  # what is missing does not fit in a replay
            print(f"deja: '{name}' could not be saved for a checkpoint", file=sys.stderr)
            traceback.print_exc()

    def call_load(_user, data, size):
        try:
            load(ctypes.string_at(data, size) if size else b"")
        except DoesNotFit as error:
            print(f"deja: '{name}': {error}", file=sys.stderr, flush=True)
            return 1
        except Exception:
            print(f"deja: '{name}' could not be loaded from the checkpoint", file=sys.stderr)
            traceback.print_exc()
            return 1
        return 0

    pair = _SAVE(call_save), _LOAD(call_load)
    engine.register_callbacks(name, *pair)
    _held[name] = pair


def blob(name, save, load):
    """The same for a save() that returns bytes."""

    def runs():
        data = save()
        yield engine.address_of(data), len(data)

    callbacks(name, runs, load)


def forget(name):
    engine.unregister(name)
    _held.pop(name, None)
    _tensors.discard(name)


def forget_all():
    for name in [*_held, *_tensors]:
        forget(name)
