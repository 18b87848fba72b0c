"""asyncio's loops where the order of locks is recorded, or kept (`deja record --threads order`).

Other threads hand a loop what it is to call: results of executors, coroutines, the ends of commands. They append it to
the loop's list without a lock. Whether a pass of the loop finds it depends on the interpreter's lock, which no
recording has. So they put it elsewhere, with a lock, and each pass takes from there once it has polled. A handler of a
signal may come in the middle and hand something over, too, so a thread can take the lock twice.
"""

import functools
import threading
from asyncio import events


def install(module):
    """module: asyncio.selector_events, which has been imported."""
    loop = module.BaseSelectorEventLoop
    loop.__init__ = _with_calls(loop.__init__)
    loop.call_soon_threadsafe = _handed_over(loop.call_soon_threadsafe)
    loop._process_events = _with_what_was_handed_over(loop._process_events)


class Calls:
    """What other threads have handed over since the loop's last pass; `lock` has a recorded order."""

    def __init__(self, lock):
        self._lock = lock
        self._handles = []

    def put(self, handle):
        with self._lock:
            self._handles.append(handle)

    def take(self):
        with self._lock:
            taken, self._handles = self._handles, []
        return taken


def hand_over(loop, calls, callback, arguments, context):
    """As call_soon_threadsafe, to `calls` of the loop."""
    loop._check_closed()
    if loop._debug:
        loop._check_callback(callback, "call_soon_threadsafe")
    handle = events.Handle(callback, arguments, loop, context)
    calls.put(handle)
    loop._write_to_self()
    return handle


def _with_calls(make):
    @functools.wraps(make)
    def make_loop(loop, *arguments, **named):
        loop._deja_calls = Calls(threading.RLock())
        make(loop, *arguments, **named)

    return make_loop


def _handed_over(call_soon):
    @functools.wraps(call_soon)
    def call_soon_threadsafe(loop, callback, *arguments, context=None):
        if loop._thread_id == threading.get_ident():
            return call_soon(loop, callback, *arguments, context=context)
        return hand_over(loop, loop._deja_calls, callback, arguments, context)

    return call_soon_threadsafe


def _with_what_was_handed_over(process):
    @functools.wraps(process)
    def process_events(loop, polled):
        process(loop, polled)
        loop._ready.extend(loop._deja_calls.take())

    return process_events
