"""multiprocessing's resource tracker: what it hears of needs no order.

Processes and threads tell the tracker which semaphores and shared memory they have made and given back. The thread that
drops the last reference gives it back. Which thread that is depends on the interpreter's lock, which no recording has:
the program's, or the one that feeds a queue. A replay that waits for the recorded writer waits for a thread that has
nothing to write. The tracker keeps a set of names, so it ends with the same ones in any order.
"""

import functools


def install(module):
    """module: multiprocessing.resource_tracker, which has been imported."""
    tracker = module.ResourceTracker
    for name in ("ensure_running", "_send"):
        setattr(tracker, name, _in_any_order(getattr(tracker, name)))


def _in_any_order(tell):
    @functools.wraps(tell)
    def tell_in_any_order(*arguments):
        from deja import engine

        with engine.any_order():
            return tell(*arguments)

    return tell_in_any_order
