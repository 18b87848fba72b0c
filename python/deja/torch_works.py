"""What an operation of a process group returns: torch.distributed.Work, which notes or knows how it ended."""

import _thread
import atexit
import queue
import sys
import threading
import time

import torch
from torch._C import _distributed_c10d as c10d

from deja import engine

_create_work_from_future = c10d._create_work_from_future


def for_python():
    """Whether the operation was called by torch's Python functions (dist.all_reduce …).

    Its Work then is a Python object, which raises what the real one raises. What C++ calls (the reducer of DDP,
    functional collectives) gets a Work of C++: C++ keeps only its own half of a Python object.
    """
    try:
        caller = sys._getframe(3)  # of the group's method
        return caller.f_code.co_filename.endswith("distributed_c10d.py")
    except ValueError:
        return False


class Ending:
    """Hands the end of one operation to the recorder, once, whichever thread learns of it first."""

    __slots__ = ("_outcome", "_dtype", "_tensors", "_lock")

    def __init__(self, outcome, dtype, tensors):
        self._outcome, self._dtype, self._tensors = outcome, dtype, tensors
        self._lock = _thread.allocate_lock()

    def succeeded(self, src=-1):
        self._tell(src=src)

    def failed(self, error):
        self._tell(error=error)

    def _tell(self, **how):
        with self._lock:
            tensors, self._tensors = self._tensors, None
            if tensors is None:
                return
            if "error" not in how:
                tensors.read_back()
                how["outputs"] = tensors.pieces
            engine.group_done(self._outcome.group, self._outcome.operation, self._dtype, **how)


class RecordedWork(c10d.Work):
    def __init__(self, watcher, work, ending, outputs, has_source):
        super().__init__()
        self._watcher, self._work, self._ending, self._outputs = watcher, work, ending, outputs
        self._has_source = has_source  # asking another work raises, and that takes a millisecond

    def wait(self, *timeout):
        try:
            with engine.library():
                result = self._work.wait(*timeout)
        except BaseException as error:
            self._ending.failed(error)
            raise
        self._finish()
        return result

    def _finish(self):
        self._ending.succeeded(self._work._source_rank() if self._has_source else -1)

    def synchronize(self):
        self.wait()

    def is_completed(self):
        with engine.library():
            done = self._work.is_completed()
        if done and self._work.exception() is None:
            self._finish()
        return done

    def is_success(self):
        return self._work.is_success()

    def exception(self):
        return self._work.exception()

    def result(self):
        return self._work.result()

    def _source_rank(self):
        return self._work._source_rank()

    source_rank = _source_rank

    def get_future(self):
        return self._watcher.future(self._work, self._ending, self._outputs)


class Watcher:
    """Waits for the operations of one group in the order in which they were issued, on a thread of its own.

    No code of Python's may run on the group's own threads: the group's destructor waits for them while it holds
    Python's lock, and a thread that asks for that lock when the interpreter ends takes the process with it. In one
    group an operation never ends later because nobody has seen the end of a later one, so one thread is enough.
    """

    def __init__(self):
        self._queue = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._unseen = 0
        self._is_running = False

    def future(self, work, ending, outputs):
        """A future that is done once the results of `work` have been recorded."""
        ended = torch.futures.Future()
        future = ended.then(_give)
        with self._lock:
            self._unseen += 1
            if not self._is_running:
                self._is_running = True
                with engine.library():
                    _thread.start_new_thread(self._watch, ())
                atexit.register(self._wait_for_all)
        self._queue.put((work, ending, outputs, ended))
        return future

    def _watch(self):
        while True:
            work, ending, outputs, ended = self._queue.get()
            try:
                result = _value_of(work, outputs)
                ending.succeeded()
            except BaseException as error:  # given to who asks the future
                ending.failed(error)
                result = error
            ended.set_result(result)
            work = ending = outputs = ended = result = None
            with self._lock:
                self._unseen -= 1

    def _wait_for_all(self):
        """The interpreter ends: what is still under way is seen to its end, unless it never comes."""
        deadline = time.monotonic() + 5
        while self._unseen and time.monotonic() < deadline:
            time.sleep(0.001)


def _give(ended):
    result = ended.value()
    if isinstance(result, BaseException):
        raise result
    return result


def _value_of(work, outputs):
    try:
        future = work.get_future()
    except RuntimeError:  # some works of gloo have none
        work.wait()
        return outputs
    return future.wait()


def recorded_work_for_cpp(watcher, work, ending, outputs):
    return _create_work_from_future(watcher.future(work, ending, outputs))


def _completed(value):
    future = torch.futures.Future()
    future.set_result(value)
    return future


class ServedWork(c10d.Work):
    def __init__(self, outcome, outputs):
        super().__init__()
        self._outcome, self._outputs = outcome, outputs

    def wait(self, *timeout):
        if self._outcome.state == engine.UNKNOWN:
            engine.group_done(self._outcome.group, self._outcome.operation)
        if self._outcome.state == engine.FAILED:
            raise engine.recorded_error(self._outcome.error)
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self._outcome.state != engine.UNKNOWN

    def is_success(self):
        return self._outcome.state == engine.DONE

    def exception(self):
        return None if self._outcome.state != engine.FAILED else engine.recorded_error(self._outcome.error)

    def result(self):
        return self._outputs

    def _source_rank(self):
        return self._outcome.src

    source_rank = _source_rank

    def get_future(self):
        return served_future(self._outcome, self._outputs)


def served_future(outcome, outputs):
    if outcome.state == engine.UNKNOWN:
        engine.group_done(outcome.group, outcome.operation)

    def give(_):
        if outcome.state == engine.FAILED:
            raise engine.recorded_error(outcome.error)
        return outputs

    return _completed(None).then(give)


def served_work_for_cpp(outcome, outputs):
    return _create_work_from_future(served_future(outcome, outputs))
