"""multiprocessing.Queue where the order of locks is recorded, or kept (`deja record --threads order`).

put() appends to a deque under a lock. The queue's own thread, which feeds the pipe, takes items from it without that
lock until there is none. Whether it meets an item that is put at that moment depends on the interpreter's lock, which
no recording has. A replay would take other locks, and wait for a turn that never comes. This deque has a lock of its
own. A finalizer that runs in the middle of it may close the queue, so it is one that a thread can take twice.
"""

import collections
import threading


def install(module):
    """module: multiprocessing.queues, which has been imported."""
    module.Queue._reset = _with_buffer(module.Queue._reset)


def _with_buffer(reset):
    def reset_queue(queue, *arguments, **named):
        reset(queue, *arguments, **named)
        queue._buffer = _Buffer()

    return reset_queue


class _Buffer(collections.deque):
    def __init__(self):
        super().__init__()
        self._deja_turns = threading.RLock()

    def append(self, item):
        with self._deja_turns:
            super().append(item)

    def popleft(self):
        with self._deja_turns:
            return super().popleft()
