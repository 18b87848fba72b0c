"""What watched optimizers do, as events: from it `deja pack --predict` works out the next checkpoint (include/deja.h,
deja_update).

For torch's own SGD, Adam and AdamW, on float32 tensors without gaps in host memory. Nothing of it needs to be right:
what a step really made of the state is what a checkpoint keeps.
"""

import atexit
import sys

import torch

from deja import engine
from deja.interpreter import handlers
from deja.training import torch_buckets, torch_clipping, torch_state, torch_steps

_SGD, _ADAM, _ADAMW = 1, 2, 3  # deja_optimizer_t
_FLOAT32 = 7
_MOMENTS = {_SGD: ("momentum_buffer", None), _ADAM: ("exp_avg", "exp_avg_sq"), _ADAMW: ("exp_avg", "exp_avg_sq")}


def can_be_told(optimizer):
    """Whether its steps are to be named, and could be computed again."""
    is_recorded = engine.mode() == engine.RECORDING and engine.variable("DEJA_LEVEL") in (None, "full")
    return is_recorded and type(optimizer) in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


class Updates:
    """The state of one optimizer."""

    def __init__(self, optimizer):
        self._optimizer = optimizer
        self._rows = None  # for each group: (parameter, its state, its id, what stays the same of its update)
        self._works = True

    def begin(self):
        """From now on its steps are named, until the interpreter ends."""
        torch_buckets.watch()
        torch_clipping.watch()
        torch_steps.call_after(self._optimizer, self.tell)
        atexit.register(torch_steps.forget_calls)

    def refresh(self):
        """Its tensors may have moved."""
        self._rows = None

    def tell(self):
        """A step has been made."""
        if not self._works:
            return
        try:
            self._tell(torch_buckets.places())
        except Exception as error:  # the program comes first
            if handlers.have_raised(error):
                raise
            self._works = False
            print(f"deja: checkpoints from here on cannot be predicted: {error!r}", file=sys.stderr)
        finally:
            torch_clipping.forget()

    def _tell(self, places):
        groups = self._optimizer.param_groups
        if self._rows is None:
            self._rows = [_rows_of(self._optimizer, group) for group in groups]
        for group, rows in zip(groups, self._rows):
            numbers = _numbers_of(self._optimizer, group)
            sign = -1.0 if group.get("maximize") else 1.0
            for parameter, state, key, row in rows:
                gradient = parameter.grad
                if gradient is None:
                    continue
                place = places.get(key) or gradient.data_ptr()
                updates = int(state.get("step", 0))
                scale = sign * torch_clipping.factor_of(parameter)
                engine.update(*row, place, updates, *numbers, scale, bool(group.get("nesterov")))


def _kind_of(optimizer, group):
    if isinstance(optimizer, torch.optim.SGD):
        return _SGD
    if group.get("amsgrad"):
        return None  # has a third moment
    is_decoupled = isinstance(optimizer, torch.optim.AdamW) or group.get("decoupled_weight_decay")
    return _ADAMW if is_decoupled else _ADAM


def _numbers_of(optimizer, group):
    """Learning rate, two betas, epsilon, decay."""
    if isinstance(optimizer, torch.optim.SGD):
        numbers = group["lr"], group["momentum"], group["dampening"], 0.0, group["weight_decay"]
    else:
        numbers = group["lr"], *group["betas"], group["eps"], group["weight_decay"]
    return [float(number) for number in numbers]


def _rows_of(optimizer, group):
    """For the parameters whose next values follow from the named updates."""
    kind, rows = _kind_of(optimizer, group), []
    for parameter in group["params"] if kind is not None else ():
        state = optimizer.state.get(parameter, {})
        moments = [None if name is None else state.get(name) for name in _MOMENTS[kind]]
        tensors = [None if t is None else torch_state.local(t) for t in (parameter, *moments)]
        if all(t is None or t.dtype is torch.float32 and torch_state.is_plain(t) for t in tensors):
            addresses = (0 if t is None else t.data_ptr() for t in tensors)
            rows.append((parameter, state, id(parameter), (kind, _FLOAT32, parameter.numel(), *addresses)))
    return rows
