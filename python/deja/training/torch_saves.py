"""Whether what a thread saves is what it was given: a checkpoint in the background must not see later values.

torch counts the changes of each tensor. They are read when a thread, or a task of a pool, is given tensors, and when
torch.save has written them there.
"""

import functools
import sys
import threading

from deja.evidence import seen

_MOST_THINGS = 10000
_MOST_DEPTH = 4
_given = threading.local()


def install(module):
    """module: torch.serialization, or concurrent.futures.thread once the program has it."""
    if not seen.is_on():
        return
    if module.__name__ == "concurrent.futures.thread":
        _watch_pools(module.ThreadPoolExecutor)
        return
    save = module.save

    @functools.wraps(save)
    def seen_save(obj, f, *args, **kwargs):
        result = save(obj, f, *args, **kwargs)
        handed = getattr(_given, "handed", None)
        if handed is not None:
            _tell_changes(handed, obj, f)
        return result

    module.save = seen_save
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "save", None) is save:
        torch.save = seen_save
    _watch_threads()


class _Handed:
    """The tensors that a thread was given: their counts then, and where that was."""

    def __init__(self, versions, place):
        self.versions, self.place = versions, place


def _watch_threads():
    start = threading.Thread.start

    @functools.wraps(start)
    def seen_start(self):
        target = getattr(self, "_target", None)
        handed = None if target is None else _handed((self._args, self._kwargs, target))
        if handed is not None:
            self._target = _with(handed, self._target)
        return start(self)

    threading.Thread.start = seen_start


def _watch_pools(executor):
    """Where the program does not import them, nothing does: they take locks at each fork."""
    submit = executor.submit

    @functools.wraps(submit)
    def seen_submit(self, fn, /, *args, **kwargs):
        handed = _handed((args, kwargs, fn))
        return submit(self, fn if handed is None else _with(handed, fn), *args, **kwargs)

    executor.submit = seen_submit


def _with(handed, function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        _given.handed = handed
        try:
            return function(*args, **kwargs)
        finally:
            _given.handed = None

    return run


@seen.safely
def _handed(things):
    args, kwargs, function = things
    versions = {}
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_filled(cell)]
    for name, tensor in _tensors_in((args, kwargs, cells)):
        versions[id(tensor)] = tensor, tensor._version, name
    return _Handed(versions, seen.place(2)) if versions else None


def _is_filled(cell):
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _tensors_in(thing, name="", depth=0, left=None):
    torch = sys.modules.get("torch")
    left = left if left is not None else [_MOST_THINGS]
    left[0] -= 1
    if torch is None or left[0] < 0 or depth > _MOST_DEPTH:
        return
    if isinstance(thing, torch.Tensor):
        if not thing.is_inference():
            yield name, thing
    elif isinstance(thing, dict):
        for key, value in list(thing.items()):
            yield from _tensors_in(value, f"{name}.{key}" if name else str(key), depth + 1, left)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            yield from _tensors_in(value, name, depth + 1, left)


@seen.safely
def _tell_changes(handed, obj, file):
    saved = {}
    for name, tensor in _tensors_in(obj):
        saved[tensor.data_ptr()] = name or "a tensor"
    for tensor, version, _ in handed.versions.values():
        name = saved.get(tensor.data_ptr())
        if name is not None and tensor._version != version:
            path = file if isinstance(file, str) else getattr(file, "name", "a file")
            seen.tell(
                "saved", name=name, file=path, times=tensor._version - version, given=handed.place, at=seen.place(3),
                thread=threading.current_thread().name,
            )
            return
