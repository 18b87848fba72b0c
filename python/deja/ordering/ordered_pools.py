"""ThreadPoolExecutor where the order of locks is recorded, or kept (`deja record --threads order`).

A pool's thread looks after each call whether there still is a pool, and then takes a lock of it. Another thread may
drop the pool at that moment, and the interpreter's lock decides which comes first. For a moment the thread itself
keeps the pool alive. If it is the last that does, the queue gets its last item from this thread, not from the other.

So a pool's thread looks at a stand-in. It is always there and never keeps the pool alive. A pool that has been shut
down has told its threads. When it is dropped then, nothing is put into its queue, since either thread may drop it.

The interpreter's end puts an item into the queue of each thread that there is, and waits for these threads. A thread
leaves their table in the order of a lock, not when its object goes.
"""

import functools
import threading
import weakref


def install(module):
    """module: concurrent.futures.thread, which has been imported."""
    pool = module.ThreadPoolExecutor
    pool.__init__ = _with_work(pool.__init__)
    pool.shutdown = _noted(pool.shutdown)
    module._threads_queues = _ThreadsQueues(module._global_shutdown_lock)
    module._worker = _without_pool(module._worker, module._threads_queues)


class _ThreadsQueues(weakref.WeakKeyDictionary):
    """The threads of all pools, with their queues. The lock is the module's, and it holds it where it adds a thread."""

    def __init__(self, lock):
        super().__init__()
        self._lock = lock

    def __setitem__(self, thread, queue):
        super().__setitem__(thread, queue.items if isinstance(queue, _Work) else queue)

    def items(self):
        with self._lock:
            return list(super().items())

    def leave(self):
        with self._lock:
            self.pop(threading.current_thread(), None)


class _Work:
    """The queue of a pool, as the pool sees it."""

    def __init__(self, pool):
        self.items = pool._work_queue  # for the pool's threads
        self.idle = pool._idle_semaphore
        self.is_shut_down = False
        self._pool = weakref.ref(pool)

    def put(self, item):
        is_by_drop = item is None and self._pool() is None
        if not (is_by_drop and self.is_shut_down):
            self.items.put(item)

    def __getattr__(self, name):
        return getattr(self.items, name)


class _StandIn:
    """What a pool's thread sees of its pool. Where it asks for a shutdown, its queue has said so."""

    def __init__(self, reference, idle):
        self._reference = reference
        self._idle_semaphore = idle
        self._shutdown = True

    def _initializer_failed(self):
        pool = self._reference()
        if pool is not None:
            pool._initializer_failed()


def _with_work(make):
    @functools.wraps(make)
    def make_pool(pool, *arguments, **named):
        make(pool, *arguments, **named)
        pool._work_queue = _Work(pool)

    return make_pool


def _noted(shutdown):
    @functools.wraps(shutdown)
    def shut_down(pool, *arguments, **named):
        try:
            return shutdown(pool, *arguments, **named)
        finally:
            if isinstance(pool._work_queue, _Work):  # a program may put another one there
                pool._work_queue.is_shut_down = True

    return shut_down


def _without_pool(worker, table):
    def work_for_stand_in(reference, *arguments):
        work = next((argument for argument in arguments if isinstance(argument, _Work)), None)
        if work is None:
            return worker(reference, *arguments)
        stand_in = _StandIn(reference, work.idle)
        others = (argument.items if argument is work else argument for argument in arguments)
        try:
            return worker(lambda: stand_in, *others)
        finally:
            table.leave()

    return work_for_stand_in
