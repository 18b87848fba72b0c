"""Run by every Python of a job that Deja records or replays: for it the preloaded library puts this folder in front of PYTHONPATH.

Does what the program's own sitecustomize would have done, and asks to be called when torch.distributed is imported.
Imports nothing else, so that a program that never uses torch.distributed sees no difference.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _run_the_next_one():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if "DEJA_OUT" in os.environ or "DEJA_REPLAY" in os.environ:
    from deja import on_import

    on_import.watch()
_run_the_next_one()
