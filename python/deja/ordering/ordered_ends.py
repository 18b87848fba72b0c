"""asyncio's commands, before Python 3.12: a pass of the loop finds the ends that it found in the recording.

A thread waits for each command, and hands its end to the loop without a lock. Whether a pass finds it depends on the
interpreter's lock, which no recording has. So the thread puts it elsewhere, with a lock of multiprocessing, whose order
is recorded. Each pass takes from there once it has polled, as long as commands run.

What other threads hand over, such as the results of executors, stays as it is: which thread does which work is not
recorded. `deja record --threads order` records that, too (ordered_loops.py).
"""

import functools
import os
import threading
from asyncio import events

from deja.ordering import ordered_loops

_thread = threading.local()  # waits_for_loop: the loop to which this thread hands the end of its command


def install(module):
    """module: asyncio.unix_events, which has been imported."""
    from deja import engine

    watcher = getattr(module, "ThreadedChildWatcher", getattr(module, "_ThreadedChildWatcher", None))
    if watcher is None or os.environ.get("DEJA_THREADS") == "order" or not engine.orders_loops():
        return
    loop = module._UnixSelectorEventLoop
    watcher.add_child_handler = _awaited(watcher.add_child_handler)
    watcher._do_waitpid = _marked(watcher._do_waitpid)
    loop.call_soon_threadsafe = _handed_over(loop.call_soon_threadsafe)
    loop._process_events = _with_ends(loop._process_events)


class _Ends(ordered_loops.Calls):
    """The ends of one loop's commands. Its thread alone counts those that it awaits."""

    def __init__(self):
        super().__init__(_shared_lock())
        self.awaited = 0

    def take(self):
        taken = super().take()
        self.awaited -= len(taken)
        return taken


def _shared_lock():
    import multiprocessing  # most loops run no commands

    try:
        # The start method fork gives the semaphore's name back at once, whatever the program's own method is.
        return multiprocessing.get_context("fork").Lock()
    except (ImportError, OSError):  # this machine has no semaphores
        return threading.Lock()


def _awaited(add):
    @functools.wraps(add)
    def add_child_handler(watcher, *arguments):
        loop = events.get_running_loop()
        if not hasattr(loop, "_deja_ends"):
            loop._deja_ends = _Ends()
        loop._deja_ends.awaited += 1
        return add(watcher, *arguments)

    return add_child_handler


def _marked(wait):
    @functools.wraps(wait)
    def wait_for_command(watcher, loop, *arguments):
        _thread.waits_for_loop = loop
        try:
            return wait(watcher, loop, *arguments)
        finally:
            del _thread.waits_for_loop

    return wait_for_command


def _handed_over(call_soon):
    @functools.wraps(call_soon)
    def call_soon_threadsafe(loop, callback, *arguments, context=None):
        ends = getattr(loop, "_deja_ends", None)
        if ends is None or getattr(_thread, "waits_for_loop", None) is not loop:
            return call_soon(loop, callback, *arguments, context=context)
        return ordered_loops.hand_over(loop, ends, callback, arguments, context)

    return call_soon_threadsafe


def _with_ends(process):
    @functools.wraps(process)
    def process_events(loop, polled):
        process(loop, polled)
        ends = getattr(loop, "_deja_ends", None)
        if ends is not None and ends.awaited != 0:
            loop._ready.extend(ends.take())

    return process_events
