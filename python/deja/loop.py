"""Where the program is in its training loop: which step, which pass over its data, which batch of it.

A replay from a checkpoint runs the program's beginning, and jumps when the first step begins. A program that has
registered what a step begins with (deja.torch.watch) has its first step late: once its optimizer has made two steps.
Only then all is there that later steps use (moments, DistributedDataParallel's final buckets, the loader's workers).
Steps before that are notes.
"""

import atexit
import contextlib
import ctypes
import dis
import os
import pickle
import sys

from deja import engine, registered, rng


class Loop:
    """One a process; for the thread that trains."""

    def __init__(self):
        self.number = 0  # of the next step
        self.batch = 0  # how many of this pass have been given out
        self._pass = 0
        self._iterable = None
        self._at_begin_of_pass = None
        self._is_open = False  # the next step has begun already
        self._epochs = None
        self._is_watched = False
        self._has_begun = False  # the first step that Deja knows
        self._prepare = self._refresh = None
        self._every = None
        self._recorded = None  # the place at the checkpoint, until the loop is there

    def watch(self, prepare, refresh, every):
        """prepare() is asked as a step begins whether it can be the first one, and has then registered everything.
        refresh() begins each checkpoint."""
        if not self._is_watched:
            atexit.register(self._release)
        self._prepare, self._refresh, self._every, self._is_watched = prepare, refresh, every, True

    def _release(self):
        """What the program has let go of goes before the interpreter does: a model can hold a process group, whose
        threads must not outlive it."""
        self._prepare = self._refresh = self._iterable = None
        registered.forget_all()

    def begin_step(self, number=None):
        """Returns the step to go on with."""
        if number is not None:
            self.number = number
        begins = self.number
        self.number += 1
        if self._is_watched and not self._has_begun:
            # Before all else, so that it is saved and loaded first.
            if not self._prepare(lambda: registered.blob("deja/loop", self._save, self._load)):
                engine.note(f"step {begins}: no replay can start before it")
                rng.compare()
                return begins
        if self._has_begun and self._every and begins % self._every == 0:
            engine.checkpoint()
        self._has_begun = True
        begins = rng.begin_step(begins)
        self.number = begins + 1
        return begins

    def go_through(self, iterable):
        self.begin_pass(iterable)
        iterator = iter(iterable)
        try:
            length = len(iterable)
        except TypeError:  # it does not know before it ends
            length = -1
        while True:
            if self.batch != length and not self._is_open:
                self._is_open = True
                self.begin_step()
                if self._recorded is not None:
                    iterator = self._go_on(iterable, iterator)
            try:
                element = next(iterator)
            except StopIteration:
                self.end_pass()
                return
            self._is_open = False
            self.batch += 1
            yield element

    def enter(self, epochs):
        self._epochs = epochs

    def begin_pass(self, iterable=None):
        self.batch = 0
        if self._is_watched:
            self._iterable = iterable
            self._at_begin_of_pass = rng.save(), _generator_state(iterable)

    def end_pass(self):
        self._pass += 1

    def begin_step_of(self, iterator):
        """For loops that are not the program's own: a step begins, and `iterator` is where it was then. True: that is
        another place."""
        self.begin_step()
        recorded, self._recorded = self._recorded, None
        if recorded is None:
            return False
        _skip(iterator, recorded["batch"] - self.batch)
        self.batch = recorded["batch"]
        rng.load(recorded["rng"])
        return True

    def _save(self):
        self._refresh()
        state = getattr(self._iterable, "state_dict", None)
        return pickle.dumps(
            {
                "pass": self._pass,
                "batch": self.batch,
                "epoch": None if self._epochs is None else self._epochs.index,
                "begin": self._at_begin_of_pass,
                "sampler": _sampler_epoch(self._iterable),
                "loader": None if state is None else state(),
                "rng": rng.save(),
            },
            protocol=4,
        )

    def _load(self, data):
        recorded = pickle.loads(data)
        if recorded["pass"] != self._pass and recorded["epoch"] is None:
            raise registered.DoesNotFit(
                f"the checkpoint is in pass {recorded['pass'] + 1} over the data; to start there the program must "
                "name its passes: for epoch in deja.epochs(range(n))"
            )
        if self._epochs is not None and recorded["epoch"] is not None:
            self._epochs.go_to(recorded["epoch"])
        rng.load(recorded["rng"])
        self._recorded = recorded

    def _go_on(self, iterable, iterator):
        """The iterator for the steps after the checkpoint."""
        recorded, self._recorded = self._recorded, None
        if recorded["loader"] is not None:
            iterable.load_state_dict(recorded["loader"])
            iterator = iter(iterable)
        elif recorded["pass"] == self._pass and self.batch > 0:  # else its sampler has drawn nothing yet
            _skip(iterator, recorded["batch"] - self.batch)
        else:
            states, generator = recorded["begin"]
            rng.load(states)
            _set_generator(iterable, generator)
            _set_sampler_epoch(iterable, recorded["sampler"])
            with _other_entropy():  # workers that stay are asked to drop what they have
                iterator = iter(iterable)
            _skip(iterator, recorded["batch"])
        self._pass, self.batch = recorded["pass"], recorded["batch"]
        self._at_begin_of_pass = recorded["begin"]
        rng.load(recorded["rng"])
        return iterator


class Epochs:
    """Goes through what it is given; in a replay from a checkpoint the loop's variable is set to what it was there."""

    def __init__(self, iterable, loop):
        self._elements = enumerate(iterable)
        self._loop = loop
        self._replaying = engine.mode() == engine.REPLAYING
        self._caller = None
        self.index = -1

    def __iter__(self):
        return self

    def __next__(self):
        self.index, element = next(self._elements)
        self._loop.enter(self)
        if self._replaying:
            frame = sys._getframe(1)
            self._caller = frame, frame.f_lasti
        return element

    def go_to(self, index):
        element = None
        if index == self.index:
            return
        while self.index < index:
            self.index, element = next(self._elements)
        _assign_target(*self._caller, element)


def _assign_target(frame, at, value):
    """Gives a value to the variable of the `for` whose next element was asked for at `at`."""
    following = (i for i in dis.get_instructions(frame.f_code) if i.offset > at and i.opname.startswith("STORE_"))
    store = next(following, None)
    names = store.argval if store is not None and isinstance(store.argval, tuple) else (store and store.argval,)
    if store is None or store.opname not in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_FAST_LOAD_FAST"):
        raise registered.DoesNotFit("deja.epochs needs a loop with one plain variable: for epoch in deja.epochs(...)")
    if store.opname == "STORE_GLOBAL":
        frame.f_globals[names[0]] = value
    else:
        assign(frame, names[0], value)


def assign(frame, name, value):
    """Gives a value to a local variable of a function that runs, as a debugger does."""
    frame.f_locals[name] = value
    to_fast = getattr(ctypes.pythonapi, "PyFrame_LocalsToFast", None)
    if to_fast is not None and sys.version_info < (3, 13):  # later ones write through
        to_fast(ctypes.py_object(frame), ctypes.c_int(0))


def _generator_state(iterable):
    generator = getattr(iterable, "generator", None)
    return None if generator is None else rng.tensor_bytes(generator.get_state())


def _set_generator(iterable, state):
    if state is not None:
        iterable.generator.set_state(rng.torch_state(state))


def _sampler_epoch(iterable):
    return getattr(getattr(iterable, "sampler", None), "epoch", None)


def _set_sampler_epoch(iterable, epoch):
    if epoch is not None:
        iterable.sampler.set_epoch(epoch)


def _skip(iterator, count):
    """The next `count` elements are not made, where that is possible."""
    torch_loader = sys.modules.get("torch.utils.data.dataloader")
    if torch_loader is not None and isinstance(iterator, torch_loader._SingleProcessDataLoaderIter):
        if iterator._dataset_kind == torch_loader._DatasetKind.Map:
            for _ in range(count):
                iterator._next_index()
                iterator._num_yielded += 1
            return
    with _other_entropy():
        for _ in range(count):
            next(iterator)


@contextlib.contextmanager
def _other_entropy():
    """What is recorded of it belongs to the run after the checkpoint: multiprocessing asks for some with each tensor
    of a worker's."""
    real = os.urandom
    os.urandom = bytes
    try:
        yield
    finally:
        os.urandom = real


LOOP = Loop()
