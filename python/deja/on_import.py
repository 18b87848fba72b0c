"""Calls Deja's torch side once torch.distributed has been imported, and never imports it by itself."""

import importlib.machinery
import sys

_WATCHED = "torch.distributed"


class _Loader:
    """The module's own loader; afterwards the module is handed over."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        from deja import torch_distributed

        torch_distributed.install(module)


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != _WATCHED:
            return None
        sys.meta_path.remove(_Finder)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def watch():
    """From now on; at once if the module is there already."""
    module = sys.modules.get(_WATCHED)
    if module is not None:
        from deja import torch_distributed

        torch_distributed.install(module)
    elif _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
