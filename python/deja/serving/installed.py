"""Puts a TracePG where torch.distributed keeps its own groups and stores, for a while."""

import os
import sys

import torch.distributed as dist

from deja.distributed import torch_objects

_MODULES = ("torch.distributed", "torch.distributed.distributed_c10d", "torch.distributed.rendezvous")
_STORES = ("TCPStore", "FileStore", "HashStore")


class Installed:
    """begin() and end(), once each."""

    def __init__(self, job):
        self._job = job
        self._before = []  # (where, name, value or None): what end() puts back
        self._was_initialized = False

    def begin(self):
        if dist.is_initialized():
            raise RuntimeError("TracePG: torch.distributed is initialised already; call destroy_process_group() first")
        facts = self._job.group_facts(0)
        self._set_environment(facts)
        c10d = sys.modules["torch.distributed.distributed_c10d"]
        self._replace("ProcessGroupGloo", self._gloo())
        for name in _STORES:
            self._replace(name, lambda *_, **__: self._job.store)
        padded = c10d._object_to_tensor
        torch_objects.install(c10d)
        self._before.append((c10d, "_object_to_tensor", padded))
        make = c10d._new_process_group_helper
        self._replace("_new_process_group_helper", lambda *args, **kwargs: make(*_with_gloo(args, kwargs), **kwargs))
        attach = getattr(c10d, "_maybe_attach_flight_recorder", None)
        if attach is not None:
            self._replace("_maybe_attach_flight_recorder", lambda *_, **__: None)
        init = c10d.init_process_group
        init("gloo", store=self._job.store, rank=facts["rank"], world_size=facts["size"])
        self._replace("init_process_group", lambda *args, **kwargs: None if dist.is_initialized() else init("gloo"))

    def end(self):
        if dist.is_initialized():
            dist.destroy_process_group()
        for where, name, value in reversed(self._before):
            if where is os.environ:
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            else:
                setattr(where, name, value)
        self._before = []

    def _gloo(self):
        job = self._job

        class ServedGloo:
            """Stands for ProcessGroupGloo: what is made is the recorded rank's next group."""

            def __new__(cls, store, rank, size, *args, **kwargs):
                return job.next_group(rank, size)

        real = getattr(sys.modules["torch.distributed.distributed_c10d"], "ProcessGroupGloo", None)
        for name in ("create_device", "create_default_device", "_Options", "Options"):
            if hasattr(real, name):
                setattr(ServedGloo, name, staticmethod(getattr(real, name)))
        return ServedGloo

    def _replace(self, name, value):
        for module in map(sys.modules.get, _MODULES):
            if module is not None and hasattr(module, name):
                self._before.append((module, name, getattr(module, name)))
                setattr(module, name, value)

    def _set_environment(self, facts):
        """What a launcher says."""
        own = {"RANK": facts["rank"], "WORLD_SIZE": facts["size"]}
        otherwise = {"LOCAL_RANK": facts["rank"], "LOCAL_WORLD_SIZE": facts["size"], "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": 1}
        own.update({name: value for name, value in otherwise.items() if name not in os.environ})
        for name, value in own.items():
            self._before.append((os.environ, name, os.environ.get(name)))
            os.environ[name] = str(value)


def _with_gloo(args, kwargs):
    """The arguments of _new_process_group_helper with the backend that is served, whatever the code asks for."""
    if "backend" in kwargs:
        kwargs["backend"] = "gloo"
        return args
    return (*args[:3], "gloo", *args[4:])
