"""The exception that ends a rank, for a debugger: also where the program is a function that `multiprocessing` calls."""

import functools
import os
import sys

_pid = None  # of the process that is watched
_examine = None


def watch(examine):
    """Calls examine(kind, error, traceback) in this process, once Python has printed the exception. Before the
    program's own modules are imported."""
    global _pid, _examine
    _pid, _examine = os.getpid(), examine

    from deja import on_import

    on_import.call_after("multiprocessing.process", __name__)
    on_import.call_after("torch.multiprocessing.spawn", __name__)
    before = sys.excepthook

    def examined(kind, error, traceback):
        before(kind, error, traceback)
        _tell(kind, error, traceback)

    sys.excepthook = examined


def install(module):
    """`multiprocessing` keeps the exceptions of the functions that it calls."""
    if module.__name__ == "multiprocessing.process":
        module.BaseProcess.run = _examined(module.BaseProcess.run)
        return
    wrap = module._wrap

    def examining(fn, *arguments):
        return wrap(_examined(fn), *arguments)

    module._wrap = examining


def _examined(function):
    @functools.wraps(function)
    def call(*arguments, **options):
        try:
            return function(*arguments, **options)
        except Exception as error:
            import traceback

            if os.getpid() == _pid:
                own = error.__traceback__.tb_next
                traceback.print_exception(type(error), error, own)
                _tell(type(error), error, own)
            raise

    return call


def _tell(kind, error, traceback):
    if os.getpid() == _pid and traceback is not None:
        _examine(kind, error, traceback)
