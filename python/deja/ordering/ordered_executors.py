"""ProcessPoolExecutor: its own thread finds in a replay what it found in the recording.

The thread that fills the workers' queue asks without waiting whether there is work, whether a worker is idle, and
whether the executor shuts down. The caller's thread changes all three at any time, and no recording has the order of
the two threads. A replay that finds less work gives the workers less, and then waits for their results.

So each of the three has a semaphore of multiprocessing beside it. Attempts to acquire such a semaphore have the same
outcome in a replay: the attempt that succeeded waits until it can.
"""

import multiprocessing
import queue


def install(module):
    """module: concurrent.futures.process, which has been imported."""
    executor, manager = module.ProcessPoolExecutor, module._ExecutorManagerThread
    executor.__init__ = _with_semaphores(executor.__init__)
    executor.shutdown = _announced(executor.shutdown)
    manager.__init__ = _with_announcement(manager.__init__)
    manager.is_shutting_down = _by_announcement(module, manager.is_shutting_down)


class _Semaphore:
    """Counts as threading.Semaphore does, for the threads of one process."""

    def __init__(self):
        # The start method fork gives the semaphore's name back at once, whatever the executor's own method is.
        self._semaphore = multiprocessing.get_context("fork").Semaphore(0)

    def acquire(self, blocking=True, timeout=None):
        return self._semaphore.acquire(blocking, timeout)

    def release(self):
        self._semaphore.release()


class _CountedQueue(queue.Queue):
    """A queue without a bound, whose get() says in a replay what it said in the recording."""

    def __init__(self):
        super().__init__()
        self._deja_count = _Semaphore()

    def put(self, item, block=True, timeout=None):
        super().put(item, block, timeout)
        self._deja_count.release()

    def get(self, block=True, timeout=None):
        if not self._deja_count.acquire(block, timeout):
            raise queue.Empty
        return super().get(block=False)


def _with_semaphores(make):
    def make_executor(executor, *arguments, **named):
        make(executor, *arguments, **named)
        executor._work_ids = _CountedQueue()
        executor._idle_worker_semaphore = _Semaphore()
        executor._deja_shutdown = _Semaphore()

    return make_executor


def _announced(shutdown):
    def announce_and_shut_down(executor, *arguments, **named):
        announcement = getattr(executor, "_deja_shutdown", None)
        if announcement is not None:
            announcement.release()
        return shutdown(executor, *arguments, **named)

    return announce_and_shut_down


def _with_announcement(make):
    def make_manager(manager, executor):
        make(manager, executor)
        # The manager does not keep its executor alive.
        manager._deja_shutdown = getattr(executor, "_deja_shutdown", None)
        manager._deja_shuts_down = False

    return make_manager


def _by_announcement(module, is_shutting_down):
    def was_announced(manager):
        announcement = manager._deja_shutdown
        if announcement is None:
            return is_shutting_down(manager)
        if not manager._deja_shuts_down:
            # shutdown() announces nothing for a process that ends, nor for an executor that was dropped.
            ends = module._global_shutdown or manager.executor_reference() is None
            manager._deja_shuts_down = announcement.acquire(blocking=False) or ends
        return manager._deja_shuts_down

    return was_announced
