"""What an operation of a process group returns: torch.distributed.Work, which notes or knows how it ended."""

import sys
import threading

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

    def __init__(self, outcome, dtype, tensors):
        self._outcome, self._dtype, self._tensors = outcome, dtype, tensors
        self._lock = threading.Lock()

    def succeeded(self, src=-1):
        self._tell(src=src)

    def failed(self, error):
        self._tell(error=error)

    def _tell(self, **how):
        with self._lock:
            tensors, self._tensors = self._tensors, None
            if tensors is None:
                return
            if "error" not in how or how["error"] is None:
                tensors.read_back()
                how["outputs"] = engine.pieces(tensors.dense)
            engine.group_done(self._outcome.group, self._outcome.operation, self._dtype, **how)


class RecordedWork(c10d.Work):
    def __init__(self, work, ending, outputs):
        super().__init__()
        self._work, self._ending, self._outputs = work, ending, outputs

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
        try:
            src = self._work._source_rank()
        except RuntimeError:
            src = -1
        self._ending.succeeded(src)

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
        return recorded_future(self._work, self._ending)


def recorded_future(work, ending):
    """A future that is done once the results have been recorded."""

    def record(future):
        try:
            value = future.value()
        except BaseException as error:
            ending.failed(error)
            raise
        ending.succeeded()
        return value

    with engine.library():
        return work.get_future().then(record)


def recorded_work_for_cpp(work, ending, outputs):
    try:
        return _create_work_from_future(recorded_future(work, ending))
    except RuntimeError:  # some works of gloo have no future
        RecordedWork(work, ending, outputs).wait()
        return _create_work_from_future(_completed(outputs))


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
