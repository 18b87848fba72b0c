"""Steps of a training loop that does not name them: each time that its optimizer has made a step, the next one begins.

With several optimizers it is the one that was first to make a step that counts. A program that names its steps itself
(deja.step, deja.steps) is left alone from then on.
"""

import functools
import weakref

from deja import engine, rng
from deja.training import torch_digests

_leader = None  # a weak reference to the optimizer that counts
_count = 0
_steps_of = {}  # by the optimizer's id: a weak reference to it, and how many steps it has made
_calls = {}  # by an optimizer's id: what is called after each of its steps, and holds it


def steps_of(optimizer):
    """How many steps it has made."""
    known = _steps_of.get(id(optimizer))
    return known[1] if known is not None else 0


def call_after(optimizer, call):
    """call() after each of its steps, until forget_calls()."""
    _calls[id(optimizer)] = call


def forget_calls():
    _calls.clear()


def _begin_to_count(optimizer):
    key = id(optimizer)
    known = _steps_of[key] = [weakref.ref(optimizer, lambda _: _steps_of.pop(key, None)), 0]
    return known


def _is_to_step(optimizer, _args=None, _kwargs=None):
    known = _steps_of.get(id(optimizer))
    step = 1 if known is None else known[1] + 1
    if torch_digests.may_be_due(step):
        torch_digests.before_step(optimizer, step)


def _has_stepped(optimizer, _args=None, _kwargs=None):
    global _leader, _count
    key = id(optimizer)
    known = _steps_of.get(key) or _begin_to_count(optimizer)
    known[1] += 1
    if _calls and key in _calls:
        _calls[key]()
    if engine.steps_are_named():
        return
    if _leader is None:
        _leader = weakref.ref(optimizer)
    if _leader() is not optimizer:
        return
    _count += 1
    rng.begin_step(_count)


def install(module):
    if engine.mode() == engine.OFF:
        return
    before_steps = getattr(module, "register_optimizer_step_pre_hook", None)
    if before_steps is not None and torch_digests.are_wanted():
        before_steps(_is_to_step)
    after_steps = getattr(module, "register_optimizer_step_post_hook", None)
    if after_steps is not None:
        after_steps(_has_stepped)
    else:
        _wrap_steps(module.Optimizer)


def _wrap_steps(base):
    """For torch before 2.0: each class's step is wrapped when the first optimizer of that class is made."""
    make = base.__init__

    @functools.wraps(make)
    def init(self, *args, **kwargs):
        make(self, *args, **kwargs)
        kind = type(self)
        if "step" in vars(kind) and not hasattr(vars(kind)["step"], "_deja_counts"):
            kind.step = _counting(kind.step)

    base.__init__ = init


def _counting(step):
    @functools.wraps(step)
    def counted(self, *args, **kwargs):
        _is_to_step(self)
        result = step(self, *args, **kwargs)
        _has_stepped(self)
        return result

    counted._deja_counts = True
    return counted
