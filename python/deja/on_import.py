"""Calls Deja's torch side once the modules that it is about have been imported, and never imports them by itself."""

import importlib
import importlib.machinery
import os
import sys

from deja.interpreter import handlers

# By module: the module of ours whose install() gets it.
_WATCHED = {
    "torch.distributed": "deja.distributed.torch_distributed",
    "torch.nn.modules.module": "deja.training.torch_digests",
    "torch.utils.data.dataloader": "deja.training.torch_loaders",
    "torch.serialization": "deja.training.torch_saves",
    "torch.storage": "deja.training.torch_storage_keys",
    "torch.optim.optimizer": "deja.training.torch_steps",
    "torch.nn.parallel.distributed": "deja.training.torch_buckets",
    "torch.nn.utils.clip_grad": "deja.training.torch_clipping",
    "torch.distributed.rpc": "deja.libraries.unrecorded",
    "torch.distributed._symmetric_memory": "deja.libraries.unrecorded",
    "jax._src.distributed": "deja.libraries.unrecorded",
    "tensorflow.python.distribute.collective_all_reduce_strategy": "deja.libraries.unrecorded",
    "xgboost.collective": "deja.libraries.unrecorded",
    "ray._private.worker": "deja.libraries.unrecorded",
    "horovod.common.basics": "deja.libraries.unrecorded",
    "streaming.base.dataset": "deja.libraries.unrecorded",
    "torch._dynamo.trace_rules": "deja.training.torch_dynamo",
    "torch._dynamo.skipfiles": "deja.training.torch_dynamo",
    "concurrent.futures.thread": "deja.training.torch_saves",
    "concurrent.futures.process": "deja.ordering.ordered_executors",
    "asyncio.unix_events": "deja.ordering.ordered_ends",
    "multiprocessing.resource_tracker": "deja.ordering.unordered_tracker",
    "threading": "deja.ordering.ordered_collections",
    "multiprocessing.managers": "deja.ordering.ordered_managers",
    "multiprocessing.spawn": "deja.spawning.spawned",
    "torch.multiprocessing.reductions": "deja.spawning.torch_shared",
    "safetensors": "deja.libraries.safetensors_files",
}
# Where the order of locks is recorded, or kept.
_ORDERED = {
    "queue": "deja.ordering.ordered_queues",
    "concurrent.futures._base": "deja.ordering.ordered_futures",
    "multiprocessing.queues": "deja.ordering.ordered_feeders",
    "concurrent.futures.thread": "deja.ordering.ordered_pools",
    "asyncio.selector_events": "deja.ordering.ordered_loops",
}
_listeners = {name: [ours] for name, ours in _WATCHED.items()}
# Ours call the library by it. From 3.14 on it imports threading, so that this is there first.
_CTYPES = "ctypes"
_listeners[_CTYPES] = []
_on_the_way = []  # the import of ctypes, with what waits for its end


def _install(module):
    if _on_the_way:
        _on_the_way[-1].append(module)
        return
    for ours in _listeners[module.__name__]:
        try:
            importlib.import_module(ours).install(module)
        except Exception as error:  # the program comes first
            if handlers.have_raised(error):
                raise
            print(f"deja: {module.__name__} is used as if Deja were not there: {error!r}", file=sys.stderr)


def call_after(name, ours):
    """Module `ours` hears of module `name`, too. Before watch()."""
    _listeners.setdefault(name, []).append(ours)


class _Loader:
    """The module's own loader; afterwards the module is handed over."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        if module.__name__ != _CTYPES:
            self._loader.exec_module(module)
            _install(module)
            return
        _on_the_way.append([])
        try:
            self._loader.exec_module(module)
        finally:
            for waiting in _on_the_way.pop():
                _install(waiting)


class _Finder:
    def __init__(self):
        self._waiting = set(_listeners)

    def find_spec(self, name, path=None, target=None):
        if name not in self._waiting:
            return None
        self._waiting.remove(name)
        if not self._waiting:
            sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def watch():
    """From now on; at once for what is there already. Once."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if os.environ.get("DEJA_THREADS") == "order":
        for name, ours in _ORDERED.items():
            call_after(name, ours)
    sys.meta_path.insert(0, _Finder())
    for name in _listeners:
        if name in sys.modules:
            _install(sys.modules[name])
