"""Python's collector of reference cycles: a replay has it run on the thread, and between the events, where it ran.

By itself it runs when enough objects have been made since, whichever thread has made them. A finalizer that takes a
semaphore, or writes into a pipe, would do so elsewhere in each run of a program with several threads.
"""

import _thread
import atexit
import gc
import os

from deja import engine

# A replay has it run by itself after that many times as many objects as usual: memory must not grow without an end.
_RELIEF = 100

_collect = gc.collect
_set_threshold = gc.set_threshold
_get_threshold = gc.get_threshold


def install(_module):
    """_module: threading, which has been imported."""
    if not engine.sees_collections():
        return
    # Other threads may run while the first one does. Nothing runs between the second one and the collector's look.
    gc.callbacks += [_tell, engine.collection_looks]
    # What the interpreter collects as it ends, it collects where it did; it takes this module away, too.
    atexit.register(_tell_no_more)
    if engine.mode() == engine.REPLAYING:
        _kept.begin()
        os.register_at_fork(after_in_child=_kept.begin)
        atexit.register(_kept.end)


def _tell(phase, info):
    engine.collection(info["generation"], phase == "stop", _thread._count() > 0)


def _tell_no_more():
    for callback in (_tell, engine.collection_looks):
        if callback in gc.callbacks:
            gc.callbacks.remove(callback)


@engine.collector
def _run(generation):
    _collect(generation)


class _Kept:
    """The thresholds are the program's to set and to ask for; those in force are larger."""

    def __init__(self):
        self._program = None  # its thresholds; None: nothing is kept

    def begin(self):
        keeps = engine.keep_collections(_run)
        if keeps and self._program is None:
            self._program = _get_threshold()
            self._enlarge()
            gc.set_threshold, gc.get_threshold = self.set_threshold, self.get_threshold
        elif not keeps:
            self._give_back()

    def end(self):
        engine.keep_collections(None)
        self._give_back()

    def _give_back(self):
        if self._program is None:
            return
        gc.set_threshold, gc.get_threshold = _set_threshold, _get_threshold
        _set_threshold(*self._program)
        self._program = None

    def _enlarge(self):
        _set_threshold(self._program[0] * _RELIEF, *self._program[1:])

    def set_threshold(self, *thresholds):
        _set_threshold(*thresholds)  # it says what is wrong with them
        self._program = _get_threshold()
        self._enlarge()

    def get_threshold(self):
        return self._program


_kept = _Kept()
