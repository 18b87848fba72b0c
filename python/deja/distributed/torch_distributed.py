"""Puts Deja's process groups and stores where torch.distributed keeps its own."""

import sys

from deja import engine

_MODULES = (
    "torch.distributed",
    "torch.distributed.distributed_c10d",
    "torch.distributed.rendezvous",
    "torch.distributed.elastic.rendezvous.c10d_rendezvous_backend",
    "torch._C._distributed_c10d",
)


def install(distributed):
    """Once torch.distributed is there. Nothing happens where nothing is recorded or replayed."""
    mode = engine.mode()
    if mode == engine.OFF or not distributed.is_available():
        return
    from torch._C import _distributed_c10d as c10d

    from deja.evidence import caught, collections_of_garbage, looks
    from deja.interpreter import exceptions
    from deja.distributed import torch_backends, torch_groups, torch_members, torch_objects, torch_reducers
    from deja.distributed import torch_stores

    exceptions.install()
    caught.install()
    collections_of_garbage.install()
    looks.install()
    torch_objects.install(sys.modules["torch.distributed.distributed_c10d"])
    torch_members.install(sys.modules["torch.distributed.distributed_c10d"])
    torch_reducers.install(distributed)

    replaying = mode == engine.REPLAYING
    new = {}
    for name in ("TCPStore", "FileStore", "HashStore"):
        real = getattr(c10d, name, None)
        if real is not None:
            new[name] = torch_stores.serving(real, c10d.HashStore) if replaying else torch_stores.recording(real)
    real = c10d.PrefixStore
    new["PrefixStore"] = (
        torch_stores.serving_prefix(real) if replaying else torch_stores.recording_prefix(real)
    )
    for name, backend in (("ProcessGroupGloo", "gloo"),):
        real = getattr(c10d, name, None)
        if real is not None:
            make = torch_groups.serving if replaying else torch_groups.recording
            new[name] = make(real, backend)
    real_gloo = getattr(c10d, "ProcessGroupGloo", None)
    for module in map(sys.modules.get, _MODULES):
        for name, made in new.items():
            if hasattr(module, name):
                setattr(module, name, made)
    if real_gloo is not None:
        torch_backends.watch(sys.modules["torch.distributed.distributed_c10d"], real_gloo)
