"""Everything that ProcessGroup and Backend of the installed torch have and Deja's groups do not define: passed on to
the real ones.

A result is recorded where it is a plain value, and given back in a replay. A call that moves tensors, takes a function
or returns an object of torch's is made, and not recorded. The trace says so, and a replay ends where it meets the
call.
"""

import base64
import datetime
import itertools
import json
import threading

import torch
from torch._C import _distributed_c10d as c10d

from deja import engine

# What makes the object itself: C++ asks it of Deja's group.
OWN = {"boxed", "unbox", "_id", "_pybind11_conduit_v1_"}
if not hasattr(c10d, "Backend"):  # before torch 2 a group has none, and these only go through what operations return
    OWN |= {"_start_coalescing", "_end_coalescing"}
# An object whose fields a replay knows (torch_groups.Options).
AS_IT_IS = {"options"}
_NOT_RECORDED = b"!"
_numbers = itertools.count(1)
_lock = threading.Lock()


class NotPlainError(Exception):
    """A value that a trace cannot hold."""


def next_number():
    """Groups are told apart by the order in which the process makes them."""
    with _lock:
        return next(_numbers)


def names():
    """What the installed torch has and object does not, by kind: ({method, …}, {property, …})."""
    methods, properties = set(), set()
    for kind in (c10d.ProcessGroup, getattr(c10d, "Backend", None)):
        for name in set(dir(kind)) - set(dir(object)) - OWN if kind else ():
            value = getattr(kind, name)
            if isinstance(value, property):
                properties.add(name)
            elif callable(value) and not isinstance(value, type):
                methods.add(name)
    return methods, properties


def add_to(group):
    """group: the class of Deja's groups. What it does not define itself is passed on."""
    methods, properties = names()
    for name in methods - set(vars(group)):
        setattr(group, name, method(name))
    for name in properties - AS_IT_IS - set(vars(group)):
        setattr(group, name, property(_asking(name), _setting(name)))


def method(name):
    def passed(self, *args, **kwargs):
        return self._deja_pass_on(name, args, kwargs)

    passed.__name__ = name
    return passed


def _asking(name):
    return lambda self: self._deja_ask(name)


def _setting(name):
    return lambda self, value: self._deja_set(name, value)


def recorded_call(group, name, real, args, kwargs):
    """What real(*args, **kwargs) returns, with a note of it."""
    made = None

    def make():
        nonlocal made
        made = real(*args, **kwargs)
        try:
            _written([*args, *kwargs.values()])
            return json.dumps(_written(made)).encode()
        except NotPlainError:
            return _NOT_RECORDED

    answer = engine.store_call("c10d_store_get", _key(group, name), make)
    if answer == _NOT_RECORDED:
        engine.not_recorded(_text(group, name))
    return made


def served_call(group, name):
    """What the recorded call returned. LookupError: there was none."""
    ask = getattr(group, "_deja_store_call", engine.store_call)
    answer = ask("c10d_store_get", _key(group, name), lambda: None)
    if answer is None:
        raise LookupError(name)
    if answer == _NOT_RECORDED:
        engine.not_recorded(_text(group, name))
        raise RuntimeError(f"deja: {_text(group, name)}")
    return _read(json.loads(answer))


def _key(group, name):
    return b"deja/group %d/%s" % (group._deja_number, name.encode())


def _text(group, name):
    return (
        f"{name} of the process group's backend {group._deja_backend}: Deja does not know this operation; "
        f"a replay ends where it is called"
    )


def _written(value):
    """As JSON has it: what JSON does not know is a list of a word and a text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, datetime.timedelta):
        return {"seconds": value.total_seconds()}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [_written(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _written(item) for key, item in value.items()}}
    kind = type(value)
    if value in getattr(kind, "__members__", {}).values() and _enumeration(kind.__qualname__) is kind:
        return {"enum": [kind.__qualname__, value.name]}
    raise NotPlainError


def _enumeration(name):
    found = c10d
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


_READ = {
    "bytes": base64.b64decode,
    "seconds": lambda seconds: datetime.timedelta(seconds=seconds),
    "device": torch.device,
    "list": lambda items: [_read(item) for item in items],
    "tuple": lambda items: tuple(_read(item) for item in items),
    "dict": lambda items: {key: _read(item) for key, item in items.items()},
    "enum": lambda named: _enumeration(named[0]).__members__[named[1]],
}


def _read(value):
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    return _READ[kind](content)
