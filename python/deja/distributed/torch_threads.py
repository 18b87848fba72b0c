"""The threads of gloo's groups at the end of the interpreter.

Such a thread frees what an operation held after it has woken who waits for it: objects of Python's among them, for
which it asks for Python's lock. A thread that asks once the interpreter has begun to end takes the process with it.
"""

import atexit
import os
import time

from deja import engine

_NAME = "pt_gloo_runloop"
_MOST_S = 1.0
_is_registered = False


def settle_at_exit():
    """Once: before the interpreter ends, the threads are given time to come to rest."""
    global _is_registered
    if not _is_registered:
        _is_registered = True
        atexit.register(_settle)


def _settle():
    with engine.library():
        deadline = time.monotonic() + _MOST_S
        at_rest = 0
        # Twice: between, Python's lock is free for a thread that has waited for it at the first look.
        while at_rest < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
            at_rest = at_rest + 1 if _are_asleep() else 0


def _are_asleep():
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/stat", encoding="ascii", errors="replace") as file:
                name, _, rest = file.read().rpartition(")")
        except OSError:  # it has ended
            continue
        if _NAME in name and not rest.startswith(" S"):
            return False
    return True
