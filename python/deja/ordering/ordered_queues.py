"""queue.SimpleQueue where the order of locks is recorded, or kept (`deja record --threads order`).

The interpreter's own takes its lock only where it finds nothing. The interpreter's lock decides whether it does, and
no recording has its order: a replay would wait for a turn that never comes. This one takes its lock for all that it
does. Its methods do what the other's do; put() may be called by a signal handler or a finalizer in the middle of any
of them.
"""

import collections
import sys
import threading
import time
import types


def install(module):
    """module: queue, which has been imported."""
    simple_queue = _class_for(module.Empty)
    own = sys.modules.get("_queue")
    if own is not None and module.SimpleQueue is getattr(own, "SimpleQueue", None):
        own.SimpleQueue = simple_queue
    module.SimpleQueue = simple_queue


def _class_for(empty_error):
    class SimpleQueue:
        """Simple, unbounded, reentrant FIFO queue."""

        __module__ = "_queue"

        def __init__(self):
            self._items = collections.deque()
            self._changed = threading.Condition(threading.RLock())

        def put(self, item, block=True, timeout=None):
            with self._changed:
                self._items.append(item)
                self._changed.notify()

        def put_nowait(self, item):
            self.put(item)

        def get(self, block=True, timeout=None):
            if block and timeout is not None and timeout < 0:
                raise ValueError("'timeout' must be a non-negative number")
            deadline = None if timeout is None else time.monotonic() + timeout
            with self._changed:
                while not self._items:
                    left = None if deadline is None else deadline - time.monotonic()
                    if not block or (left is not None and left <= 0):
                        raise empty_error
                    self._changed.wait(left)
                return self._items.popleft()

        def get_nowait(self):
            return self.get(block=False)

        def empty(self):
            return self.qsize() == 0

        def qsize(self):
            with self._changed:
                return len(self._items)

        __class_getitem__ = classmethod(types.GenericAlias)

    SimpleQueue.__qualname__ = "SimpleQueue"
    return SimpleQueue
