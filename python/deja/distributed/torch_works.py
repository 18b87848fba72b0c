"""What an operation of a process group returns: torch.distributed.Work, which notes or knows how it ended."""

import _thread
import atexit
import functools
import os
import queue
import sys
import time

import torch
from torch._C import _distributed_c10d as c10d

from deja import engine
from deja.distributed import torch_flights
from deja.distributed.torch_dense import BYTES
from deja.interpreter import handlers

_DISPATCHER = os.path.join(os.path.dirname(__file__), "torch_mixed_groups.py")
_create_work_from_future = c10d._create_work_from_future
_make_work = c10d.Work.__init__
_frame_at = sys._getframe
_queue_callback = torch._C._ImperativeEngine().queue_callback  # torch.autograd is not there yet

# Since 2.9 C++ that is given a Work of Python's keeps it alive. Before, it kept its own half only, whose wait never
# ends: there C++ gets Works of C++.
CPP_KEEPS_WORKS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 9)


def _called_by_python(method, depth):
    """Whether the caller's `depth`-th caller is code of Python's that names the method: else C++ has called that."""
    try:
        frame = _frame_at(depth + 1)
    except ValueError:
        return False
    if frame.f_code.co_filename == _DISPATCHER:
        frame = frame.f_back
    return frame is not None and method in frame.f_code.co_names


def _at_end_of_backward(call):
    """In a backward pass: has call() made at its end, before what C++ (the reducer of DDP) does there, and returns
    True.

    The reducer hands no tensor on from an operation that was issued in a backward pass before it has been there.
    """
    try:
        _queue_callback(call)
    except RuntimeError:  # no backward pass
        return False
    return True


class _OwnLock:
    """A lock that a replay does not take: it is not one of the program's, whose order counts."""

    __slots__ = ("_acquire", "_release")

    def __init__(self):
        lock = _thread.allocate_lock()
        self._acquire, self._release = lock.acquire, lock.release

    def __enter__(self):
        engine.as_library(self._acquire, ())

    def __exit__(self, *_):
        self._release()


def last_look(operation, copies, source, flight):
    """What engine.ending() has called before the end of the operation, a number, is recorded.

    copies: the Dense that has what it writes, if any. source: asks who sent what was received; None: not needed.

    flight: what torch_flights.watched() said.
    """

    def look():
        if flight is not None:
            torch_flights.tell_if_changed(flight, operation)
        if copies is not None:
            copies.read_back()
        return -1 if source is None else source()

    return look


class RecordedWork(c10d.Work):
    def __init__(self, watcher, work, end, outputs):
        _make_work(self)
        self._watcher, self._work, self._end, self._outputs = watcher, work, end, outputs

    def wait(self, *timeout):
        return self._end(self._work.wait, timeout)

    def synchronize(self):
        self.wait()

    def is_completed(self):
        done = engine.as_library(self._work.is_completed, ())
        # exception() of a work of C++ cannot be asked from Python: it raises.
        if done and self._work.is_success():
            self._end(None, ())
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
        if not _called_by_python("get_future", 1) and _at_end_of_backward(self.note):
            return self._work.get_future()
        return self._watcher.future(self._work, self._end, self._outputs)

    def note(self):
        _note(self._work, self._end)

    def block_current_stream(self):
        return self._work.block_current_stream()

    def _pass_on(self, name, args):
        engine.not_recorded(_text(name))
        return getattr(self._work, name)(*args)


def _text(name):
    return f"{name} of torch.distributed.Work: Deja does not know it; a replay ends where it is called"


def _note(work, end, _outputs=None):
    """Waits, and leaves it to others to meet the error. _outputs: are there until then."""
    try:
        end(work.wait, ())
    except Exception as error:
        if handlers.have_raised(error):
            raise


def recorded(name, watcher, work, end, outputs):
    """The Work of a recorded operation, for who called it. end: what engine.ending() made."""
    made = RecordedWork(watcher, work, end, outputs)
    if CPP_KEEPS_WORKS or name in ("send", "recv", "recv_anysource") or _called_by_python(name, 3):
        return made
    # C++ waits for the operation at once, unless it is in a backward pass.
    if not _at_end_of_backward(made.note):
        made.wait()
    return work


def recorded_for_reducer(name, watcher, work, end, outputs):
    """The same for C++ that hands no tensor on before a backward pass ends."""
    try:
        _queue_callback(functools.partial(_note, work, end, outputs))
    except RuntimeError:  # no backward pass
        return recorded(name, watcher, work, end, outputs)
    return work


class Watcher:
    """Waits for the operations of one group in the order in which they were issued, on a thread of its own.

    No code of Python's may run on the group's own threads. The group's destructor waits for them while it holds
    Python's lock. A thread that asks for that lock when the interpreter ends takes the process with it. In one group
    the end of an operation never depends on a look at a later one, so one thread is enough; what a callback issues
    gets one of its own.
    """

    def __init__(self):
        self._queue = queue.SimpleQueue()
        self._lock = _OwnLock()
        self._unseen = 0
        self._is_running = False
        self._threads = set()

    def future(self, work, end, outputs):
        """A future that is done once the results of `work` have been recorded."""
        ended = torch.futures.Future()
        item = work, end, outputs, ended
        with self._lock:
            self._unseen += 1
            # A callback may wait for an operation that it issues itself, on the thread that sees to the others.
            is_in_callback = _thread.get_ident() in self._threads
            if not self._is_running:
                atexit.register(self._wait_for_all)
            if not self._is_running or is_in_callback:
                with engine.library():
                    _thread.start_new_thread(self._watch, (item if is_in_callback else None,))
            self._is_running = True
        if not is_in_callback:
            engine.as_library(self._queue.put, (item,))
        return ended

    def _watch(self, only):
        """Sees to `only`, or to all that is in the queue."""
        self._threads.add(_thread.get_ident())
        while True:
            self._see(*(only or self._queue.get()))
            if only:
                self._threads.discard(_thread.get_ident())
                return

    def _see(self, work, end, outputs, ended):
        try:
            ended.set_result(end(_value_of, (work, outputs)))
        except Exception as error:  # given to who asks the future
            ended.set_exception(error)
        with self._lock:
            self._unseen -= 1

    def _wait_for_all(self):
        """The interpreter ends: what is still under way is seen to its end, unless it never comes."""
        deadline = time.monotonic() + 5
        while self._unseen and time.monotonic() < deadline:
            time.sleep(0.001)


def _value_of(work, outputs):
    try:
        future = work.get_future()
    except RuntimeError:  # some works of gloo have none
        work.wait()
        return outputs
    return future.wait()


class ServedWork(c10d.Work):
    def __init__(self, outcome, outputs):
        super().__init__()
        self._outcome, self._outputs = outcome, outputs

    def wait(self, *timeout):
        if self._outcome.state == engine.UNKNOWN:
            engine.ending(self._outcome.group, self._outcome.operation, BYTES, b"", None)(None, ())
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
        future = torch.futures.Future()
        if self._outcome.state == engine.DONE or (
            not _called_by_python("get_future", 1) and _at_end_of_backward(self.wait)
        ):
            future.set_result(self._outputs)
            return future
        try:
            self.wait()
        except Exception as error:  # given to who asks the future
            future.set_exception(error)
        return future


    def block_current_stream(self):
        self.wait()

    def _pass_on(self, name, _):
        engine.not_recorded(_text(name))
        raise RuntimeError(f"deja: {_text(name)}")


def _passing(name):
    return lambda self, *args: self._pass_on(name, args)


for _name in set(dir(c10d.Work)) - set(dir(object)) - {"boxed", "unbox", "_pybind11_conduit_v1_"}:
    for _kind in (RecordedWork, ServedWork):
        if callable(getattr(c10d.Work, _name)) and _name not in vars(_kind):
            setattr(_kind, _name, _passing(_name))


def served(name, outcome, outputs):
    """The Work of a served operation, for who called it."""
    made = ServedWork(outcome, outputs)
    if CPP_KEEPS_WORKS or _called_by_python(name, 3):
        return made
    if outcome.state != engine.DONE and not _at_end_of_backward(made.wait):
        made.wait()
    future = torch.futures.Future()
    future.set_result(outputs)
    return _create_work_from_future(future)
