"""Stores of torch.distributed whose calls are recorded, and answered by key in a replay.

In a recording each class is a subclass of the real one. What C++ does with it stays real and unseen; what Python asks
is recorded. In a replay there is no server and no file. What Python asks is answered from the recording, and C++ has a
store in this process's memory. ProcessGroupNCCL needs no more: its NCCL is served, whatever unique id it gets.
"""

import datetime
import sys
import threading

from deja import engine

_lock = threading.Lock()
_made = 0


_MADE = b"deja/store "  # how a store's constructor ended, by the store's number


def _next_store():
    """Stores are told apart by the order in which the process makes them."""
    global _made
    with _lock:
        _made += 1
        return f"{_made}:"


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def _joined(parts):
    return b"\0".join(_bytes(part) for part in parts)


def _split(data):
    return data.split(b"\0") if data else []


class _Calls:
    """Every method of Store, given `_call(function, key, real)` and, for the real one, `_real(name)`."""

    def set(self, key, value):
        self._call("set", key, lambda: self._real("set")(key, value) and b"" or b"", b"")

    def get(self, key):
        return self._call("get", key, lambda: bytes(self._real("get")(key)))

    def add(self, key, amount):
        return int(self._call("add", key, lambda: str(self._real("add")(key, amount)).encode()))

    def compare_set(self, key, expected, desired):
        return self._call(
            "compare_set", key, lambda: bytes(self._real("compare_set")(key, expected, desired))
        )

    def wait(self, keys, *timeout):
        self._call("wait", _joined(keys), lambda: self._real("wait")(keys, *timeout) and b"" or b"", b"")

    def check(self, keys):
        return self._call("check", _joined(keys), lambda: b"%d" % self._real("check")(keys), b"0") == b"1"

    def delete_key(self, key):
        return self._call("delete_key", key, lambda: b"%d" % self._real("delete_key")(key), b"1") == b"1"

    def num_keys(self):
        return int(self._call("num_keys", "", lambda: b"%d" % self._real("num_keys")()))

    def append(self, key, value):
        self._call("append", key, lambda: self._real("append")(key, value) and b"" or b"", b"")

    def multi_get(self, keys):
        def real():
            values = [bytes(value) for value in self._real("multi_get")(keys)]
            return b"".join(b"%d:" % len(value) + value for value in values)

        data, values = self._call("multi_get", _joined(keys), real), []
        while data:
            size, _, data = data.partition(b":")
            values.append(data[: int(size)])
            data = data[int(size) :]
        return values

    def multi_set(self, keys, values):
        self._call(
            "multi_set", _joined(keys), lambda: self._real("multi_set")(keys, values) and b"" or b"", b""
        )

    def _call(self, function, key, real, otherwise=None):
        value = engine.store_call("c10d_store_" + function, self._deja_prefix + _bytes(key), real)
        if value is None:
            if otherwise is None:
                raise RuntimeError(f"deja: the recording has no {function} of the store's key {key!r}")
            return otherwise
        return value


def _makes_process_group():
    """Whether init_process_group asks for the store. A launcher's agent has stores of its own."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "init_process_group":
        frame = frame.f_back
    return frame is not None


def recording(real):
    """The class to use instead of `real`, a store that has a server, a file or memory of its own."""

    class Recorded(_Calls, real):
        def __init__(self, *args, **kwargs):
            self._deja_prefix = _next_store().encode()
            engine.store_call(
                "c10d_store_get",
                _MADE + self._deja_prefix,
                lambda: real.__init__(self, *args, **kwargs) or b"",
                of_rank=_makes_process_group(),
            )

        def _real(self, name):
            return getattr(real, name).__get__(self)

    return _named(Recorded, real)


def recording_prefix(real):
    """The same for PrefixStore."""

    class Recorded(_Calls, real):
        def __init__(self, prefix, store):
            self._deja_prefix = _prefix_of(store) + _bytes(prefix) + b"/"
            real.__init__(self, prefix, store)
            self._deja_store = store

        def _real(self, name):
            return getattr(real, name).__get__(self)

    return _named(Recorded, real)


def _prefix_of(store):
    return getattr(store, "_deja_prefix", b"?")


def serving(real, memory):
    """The class that stands for `real` in a replay. memory: HashStore, which C++ finds in it."""

    class Served(_Calls, memory):
        def __init__(self, *args, **kwargs):
            memory.__init__(self)
            self._deja_prefix = _next_store().encode()
            # Raises what the recorded constructor raised.
            engine.store_call("c10d_store_get", _MADE + self._deja_prefix, lambda: b"")
            names = ("host", "port") if real.__name__ == "TCPStore" else ("path",)
            for name, value in list(zip(names, args)) + [(n, kwargs[n]) for n in names if n in kwargs]:
                setattr(self, name, value)
            memory.set_timeout(self, kwargs.get("timeout", datetime.timedelta(seconds=300)))

        def _real(self, name):
            raise RuntimeError(f"deja: {name} has no real store in a replay")

    return _named(Served, real)


def serving_prefix(real):
    class Served(serving(real, real)):
        def __init__(self, prefix, store):
            real.__init__(self, prefix, store)
            self._deja_prefix = _prefix_of(store) + _bytes(prefix) + b"/"
            self._deja_store = store
            # A plain Store holds nothing: MPI's groups have one, since they need none.
            self._deja_holds = getattr(store, "_deja_holds", type(store) is not real.__base__)
            for key in getattr(_making, "keys", ()) if self._deja_holds else ():
                real.set(self, key, "\0" * _NCCL_UNIQUE_ID_BYTES)

    return _named(Served, real)


_NCCL_UNIQUE_ID_BYTES = 128
_MOST_COMMUNICATORS = 64  # that a group of NCCL's makes in its life: after each abort another one
_making = threading.local()


class unique_ids:
    """with unique_ids(rank): the stores that are made, in a replay, have what other ranks put there for
    ProcessGroupNCCL.

    It asks for the n-th unique id by the key n. The key for a communicator of two ranks is "lower:higher". rank: in
    the group; None or less: not in it.
    """

    def __init__(self, rank):
        lower = range(max(rank or 0, 0))
        self._keys = [*map(str, range(_MOST_COMMUNICATORS)), *(f"{peer}:{rank}" for peer in lower)]

    def __enter__(self):
        _making.keys = self._keys

    def __exit__(self, *_):
        _making.keys = ()


def _named(made, real):
    made.__name__, made.__qualname__, made.__module__ = real.__name__, real.__qualname__, real.__module__
    return made
