"""Run by every Python of a job that Deja records or replays: for it the preloaded library puts this folder in front of
PYTHONPATH.

Does what the program's own sitecustomize would have done, asks to be called when torch.distributed is imported, and
notes an exception that ends the program. Imports nothing else, so that a program that never uses torch.distributed sees
no difference.
"""

import importlib.machinery
import importlib.util
import os
import sys


_HERE = os.path.dirname(os.path.abspath(__file__))


def _is_preloaded():
    """Deja's library puts this folder in front of what PYTHONPATH says, and leaves the variable as it is."""
    if _HERE not in os.environ.get("PYTHONPATH", "").split(os.pathsep) and not _HERE.endswith("-packages"):
        return True
    from deja import engine

    return engine.mode() != engine.OFF


def _is_of_the_main_interpreter():
    """What Deja does in an interpreter is of the whole process: the others of a process are left alone. They share its
    types, and may run at the same time."""
    if sys.version_info < (3, 9):
        return True
    import _signal

    try:
        _signal.set_wakeup_fd(-1)  # as it is; others may not set it
    except ValueError:
        return False
    return True


def _run_the_next_one():
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if _is_preloaded() and _is_of_the_main_interpreter():
    if os.path.join(_HERE, "with-pdb") in sys.path:  # deja replay --pdb
        from deja.interpreter import debugger

        debugger.begin()
    if os.path.join(_HERE, "with-debugpy") in sys.path:  # deja replay --debugpy
        from deja.interpreter import editor

        editor.begin()
    if os.path.join(_HERE, "with-profile") in sys.path:  # deja replay --profile
        from deja.interpreter import measured

        measured.begin_profile()
    if os.path.join(_HERE, "with-coverage") in sys.path:  # deja replay --coverage
        from deja.interpreter import measured

        measured.begin_coverage()
    from deja import on_import

    on_import.watch()
    from deja.interpreter import exceptions

    exceptions.install()
_run_the_next_one()
