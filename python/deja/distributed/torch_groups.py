"""Process groups of torch.distributed whose operations are recorded, and answered in a replay.

Recorded stands between the program and the real group (gloo, mpi, a plug-in's). It hands every operation with its
tensors to the recorder, has the real group do it, and notes how it ended. Served has no real group.
"""

import datetime
import functools
import hashlib
import types

import torch
from torch._C import _distributed_c10d as c10d

from deja import engine, torch_versions
from deja.interpreter import python_stack
from deja.distributed import torch_passing, torch_threads, torch_works
from deja.distributed.torch_dense import BYTES
from deja.distributed.torch_operations import NEWER, Group, RealMethod, of_split

_TIMEOUT = datetime.timedelta(minutes=30)  # torch's own, where none is given


def identity_of(ranks, name):
    """The same number in all ranks of a group."""
    text = name + ":" + ",".join(str(rank) for rank in ranks)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


class Recorded(Group):
    """A group with the real one behind it, which `make` makes: of C++, or a plug-in's of Python."""

    def __init__(self, backend, store, rank, size, name, make, timeout=None):
        super().__init__(rank, size, backend)

        def make_both():
            made = make()
            return made, as_group(made, backend, store, rank, size)

        (self._deja_real, self._deja_as_group), self._deja_group = new_group(rank, size, name, make_both)
        self._deja_watcher = torch_works.Watcher()
        torch_threads.settle_at_exit()
        self._deja_store, self._deja_timeout = store, timeout or _TIMEOUT

    def check_collectives(self, real_gloo):
        """As torch does for TORCH_DISTRIBUTED_DEBUG=DETAIL: a second group compares what the ranks call."""
        is_plain = self._deja_real is not self._deja_as_group or self._deja_backend in ("gloo", "ucc")
        if self._deja_backend == "mpi" or not is_plain:
            return
        store, rank, size = self._deja_store, self._deja_rank, self._deja_size
        with engine.library():
            helper = real_gloo(c10d.PrefixStore("pg_wrapper", store), rank, size, timeout=self._deja_timeout)
            checking = c10d._ProcessGroupWrapper(self._deja_real, helper)
            self._deja_as_group = as_group(checking, self._deja_backend, store, rank, size)
        self._deja_methods.clear()

    def __getattr__(self, name):
        # What only this backend has: its options, a plug-in's own methods.
        if name.startswith(("_deja_", "__")):
            raise AttributeError(name)
        value = getattr(self._deja_real, name)
        if not callable(value):
            return value
        torch_passing.recorded_call(self, f"has {name}", lambda: True, (), {})
        return torch_passing.method(name).__get__(self)

    def _deja_find_method(self, name):
        try:
            call = self._deja_real_of(name)
        except AttributeError:  # raised, and recorded, where the operation is made
            return RealMethod(lambda *args, **kwargs: self._deja_real_of(name)(*args, **kwargs), False)
        kinds = type(self._deja_real), type(self._deja_as_group)
        names = name, NEWER.get(name, name)
        is_python = any(isinstance(getattr(kind, name, None), types.FunctionType) for kind in kinds for name in names)
        found = self._deja_methods[name] = RealMethod(call, is_python)
        return found

    def _deja_real_of(self, name):
        """That of the real group, or what its backend alone has."""
        kind, newer = type(self._deja_as_group), NEWER.get(name)
        # A plug-in's group may define but the name of today.
        if newer and getattr(kind, newer, None) is not getattr(c10d.ProcessGroup, newer, None):
            name = newer
        has_it = hasattr(kind, name)
        return getattr(self._deja_as_group if has_it else self._deja_real, name)

    def _deja_pass_on(self, name, args, kwargs):
        return torch_passing.recorded_call(self, name, self._deja_real_of(name), args, kwargs)

    def _deja_ask(self, name):
        return torch_passing.recorded_call(self, name, lambda: self._deja_real_of(name), (), {})

    @property
    def _device_types(self):
        if self._deja_real is self._deja_as_group and hasattr(self._deja_real, "_device_types"):
            return self._deja_ask("_device_types")  # a plug-in's group, without a backend: it may have none
        return super()._device_types

    def _deja_set(self, name, value):
        has_it = hasattr(type(self._deja_as_group), name)
        setattr(self._deja_as_group if has_it else self._deja_real, name, value)

    def get_group_store(self):
        return self._deja_store

    def split_group(self, ranks, *args, **kwargs):
        split = functools.partial(self._deja_as_group.split_group, ranks, *args, **kwargs)
        if self._deja_rank not in ranks:
            return engine.as_library(split, ())
        place = self._deja_store, ranks.index(self._deja_rank), len(ranks)
        group = Recorded.__new__(type(self))
        Recorded.__init__(group, self._deja_backend, *place, self._deja_split_name(args, kwargs), split, self._deja_timeout)
        return self._deja_like_its_parent(group, args, kwargs)

    def _set_group_name(self, name):
        super()._set_group_name(name)
        if hasattr(self._deja_as_group, "_set_group_name"):
            self._deja_as_group._set_group_name(name)

    setGroupName = _set_group_name

    def _set_group_desc(self, description):
        super()._set_group_desc(description)
        if hasattr(self._deja_as_group, "_set_group_desc"):
            self._deja_as_group._set_group_desc(description)

    setGroupDesc = _set_group_desc

    def abort(self):
        self._deja_real.abort()

    def shutdown(self):
        self._deja_real.shutdown()

    def set_timeout(self, timeout):
        self._deja_real.set_timeout(timeout)

    _set_default_timeout = set_timeout


class Served(Group):
    """A group of a replay."""

    def __init__(self, backend, rank, size, name, timeout=None, store=None):
        super().__init__(rank, size, backend)
        _, self._deja_group = new_group(rank, size, name, None)
        self._deja_store = store
        self._deja_set_values = {}  # of properties, by the program
        self.options = Options(timeout)

    def check_collectives(self, _):
        """The ranks are to compare what they call. A replay has the outcomes."""

    def _deja_find_method(self, name):
        found = self._deja_methods[name] = RealMethod(_nothing_real, False)
        return found

    def _deja_pass_on(self, name, args, kwargs):
        try:
            return torch_passing.served_call(self, name)
        except LookupError:
            raise RuntimeError(f"deja: the recording has no call of the process group's {name}") from None

    def _deja_ask(self, name):
        if name in self._deja_set_values:
            return self._deja_set_values[name]
        try:
            return torch_passing.served_call(self, name)
        except LookupError:
            return False if name.startswith("supports_") else None

    @property
    def _device_types(self):
        try:
            return torch_passing.served_call(self, "_device_types")
        except LookupError:
            return super()._device_types

    def _deja_set(self, name, value):
        self._deja_set_values[name] = value

    def get_group_store(self):
        return self._deja_store

    def split_group(self, ranks, *args, **kwargs):
        if self._deja_rank not in ranks:
            return None
        place = ranks.index(self._deja_rank), len(ranks)
        name = self._deja_split_name(args, kwargs)
        group = Served.__new__(type(self))
        Served.__init__(group, self._deja_backend, *place, name, self.options._timeout, self._deja_store)
        return self._deja_like_its_parent(group, args, kwargs)

    def __getattr__(self, name):
        if not name.startswith(("_deja_", "__")):
            try:
                torch_passing.served_call(self, f"has {name}")
                return torch_passing.method(name).__get__(self)
            except LookupError:
                pass
        what = f"a replay has no real group of the backend {self._deja_backend}, which alone would know"
        raise AttributeError(f"deja: {what} '{name}'" if not name.startswith("_") else name)

    def abort(self):
        pass

    def shutdown(self):
        pass

    def set_timeout(self, timeout):
        self.options._timeout = timeout

    _set_default_timeout = set_timeout


def as_group(made, backend, store, rank, size):
    """torch 2 has backends behind a ProcessGroup, which knows more operations than they do."""
    if isinstance(made, c10d.ProcessGroup):
        return made
    group = c10d.ProcessGroup(store, rank, size)
    kinds = c10d.ProcessGroup.BackendType
    kind = getattr(kinds, backend.upper(), kinds.CUSTOM)
    group._set_default_backend(kind)
    group._register_backend(torch.device("cpu"), kind, made)
    return group


def new_group(rank, size, name, make):
    """What make() made, None in a replay, and the number of the group."""
    made = _new_group(rank, size, name, make)
    newer = torch_versions.newer(torch)
    if newer:
        engine.not_recorded(f"what is new in torch.distributed: {newer}", may_be=True)
    return made


def _new_group(rank, size, name, make):
    return engine.new_group(make, rank, size, name, identity_of([size], name), BYTES, python_stack.here(3))


def name_of(store):
    """The key of a group that meets in that store: the same in all its ranks, and no other group's."""
    return getattr(store, "_deja_prefix", b"").decode(errors="replace")


def recording(real, backend):
    """The class to use instead of `real` (ProcessGroupGloo, …)."""

    class RecordedGroup(Recorded):
        def __new__(cls, *args, **kwargs):
            # A plug-in's backend may have one of torch's inside.
            return real(*args, **kwargs) if engine.in_real_call() else super().__new__(cls)

        def __init__(self, store, rank, size, *args, **kwargs):
            def make():
                return real(store, rank, size, *args, **kwargs)

            super().__init__(backend, store, rank, size, name_of(store), make, kwargs.get("timeout"))

    return _like(RecordedGroup, real)


def serving(real, backend):
    """The class that stands for `real` in a replay."""

    class ServedGroup(Served):
        def __init__(self, store, rank, size, *args, **kwargs):
            super().__init__(backend, rank, size, name_of(store), kwargs.get("timeout"), store)

    return _like(ServedGroup, real)


def _nothing_real(*_args, **_kwargs):
    raise RuntimeError("deja: a replay has no real group that could do it")


class Options:
    def __init__(self, timeout):
        self._timeout = timeout or _TIMEOUT
        self.backend = ""


def _like(made, real):
    """Named as the real class, with what programs ask of the class itself."""
    for name in ("create_device", "create_default_device", "Device", "Options", "_Options"):
        if hasattr(real, name):
            setattr(made, name, getattr(real, name))
    made.__name__, made.__qualname__, made.__module__ = real.__name__, real.__qualname__, real.__module__
    return made
