"""Digests of parameters, gradients and the state of optimizers, as a step of an optimizer begins: for `deja check`.

By themselves at the first steps and then ever more seldom, so that what they cost does not grow with the run; with
`deja record --state-digests N` every N steps.
"""

import gc
import sys
import weakref

from deja import engine
from deja.evidence import seen

_FIRST_STEPS, _FIRST_OF_LARGE = 32, 4
_LARGE = 64 << 20  # bytes of parameters

_numbers = weakref.WeakKeyDictionary()  # by optimizer
_made_at = weakref.WeakKeyDictionary()  # by module: where the program made it
_every = 0
_is_on = None


def install(module):
    """module: torch.nn.modules.module. From now on it is known where modules are made."""
    if not are_wanted():
        return
    base = module.Module
    make = base.__init__

    def init(self, *args, **kwargs):
        make(self, *args, **kwargs)
        _tell_place(self)

    init.__doc__, init.__name__, init.__qualname__ = make.__doc__, make.__name__, make.__qualname__
    init.__wrapped__ = make
    base.__init__ = init


@seen.safely
def _tell_place(module):
    _made_at[module] = seen.place(1)


def are_wanted():
    """Whether anything is to be said of the steps of optimizers."""
    global _is_on, _every
    if _is_on is None:
        _is_on = seen.is_on()
        _every = int(engine.variable("DEJA_STATE_DIGESTS") or 0) if _is_on else 0
    return _is_on


class _Known:
    """What is to be said of one optimizer's parameters, in their order."""

    def __init__(self, optimizer):
        self.number = len(_numbers)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.bytes = sum(p.numel() * p.element_size() for p in parameters)
        self.names = _names_of(parameters)

    def is_due(self, step):
        if _every:
            return step % _every == 0 or step == 1
        return step <= (_FIRST_OF_LARGE if self.bytes > _LARGE else _FIRST_STEPS) or step & (step - 1) == 0


def may_be_due(step):
    """Whether there is an optimizer of which before_step() would say something."""
    return bool(_every) or step <= _FIRST_STEPS or step & (step - 1) == 0


@seen.safely
def before_step(optimizer, step):
    """step: the number of the step that begins, from 1."""
    if not are_wanted():
        return
    known = _numbers.get(optimizer)
    if known is None:
        known = _numbers[optimizer] = _Known(optimizer)
    if known.is_due(step):
        _tell(optimizer, known, step)


def _tell(optimizer, known, step):
    weights, gradients, states = [], [], []
    at, index = seen.place(2), 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            weight = seen.digest(parameter.detach())
            gradient = None if parameter.grad is None else seen.digest(parameter.grad.detach())
            name, ranks, made = known.names.get(id(parameter), (f"parameter {index}", "", ""))
            seen.tell(
                "state",
                optimizer=known.number,
                step=step,
                name=name,
                weight=seen.text_of(weight),
                gradient="none" if parameter.grad is None else seen.text_of(gradient),
                replicas=ranks,
                shape="x".join(map(str, parameter.shape)),
                made=made,
                at=at,
            )
            weights.append(weight)
            gradients.append(gradient or 0)
            states += _state_digests(optimizer.state.get(parameter))
            index += 1
    seen.tell(
        "optimizer",
        optimizer=known.number,
        step=step,
        kind=type(optimizer).__name__,
        lr=_number(optimizer.param_groups[0].get("lr")),
        weights=seen.text_of(seen.together(weights)),
        gradients=seen.text_of(seen.together(gradients)),
        state=seen.text_of(seen.together(states)),
        at=at,
    )


def _state_digests(state):
    if not isinstance(state, dict):
        return []
    torch = sys.modules["torch"]
    return [seen.digest(value) for value in state.values() if isinstance(value, torch.Tensor)]


def _number(value):
    """As it is named: asking a tensor for its number may wait for a device."""
    return repr(value) if isinstance(value, (int, float)) else "unknown"


def _names_of(parameters):
    """By id of each parameter: its name in the outermost module that has it, the ranks on which
    DistributedDataParallel keeps it equal, its place."""
    wanted = {id(p) for p in parameters}
    names = _names_in(list(_made_at), wanted)
    if len(names) < len(wanted):  # copies of modules are made without their __init__
        kind = sys.modules["torch"].nn.Module
        # By their type: asking an object for its __class__ may run its code, such as torch's that warns of old names.
        names = _names_in([thing for thing in gc.get_objects() if issubclass(type(thing), kind)], wanted)
    return names


def _names_in(modules, wanted):
    inner = {id(child) for module in modules for child in module.children()}
    names = {}
    data_parallel = getattr(sys.modules.get("torch.nn.parallel.distributed"), "DistributedDataParallel", ())
    for module in modules:
        if id(module) in inner:
            continue
        kept_equal = _kept_equal(module, data_parallel)
        for path, owner in module.named_modules():
            for name, parameter in owner.named_parameters(recurse=False):
                if id(parameter) in wanted and id(parameter) not in names:
                    full = f"{path}.{name}" if path else name
                    ranks = kept_equal.get(id(parameter), "")
                    names[id(parameter)] = full.replace("module.", "", 1 if ranks else 0), ranks, _made_at.get(owner, "")
    return names


def _kept_equal(module, data_parallel):
    """Parameters whose gradients a DistributedDataParallel somewhere in it sums: by id the ranks that do."""
    found = {}
    for part in module.modules():
        if data_parallel and isinstance(part, data_parallel) and not getattr(part, "_comm_hooks", None):
            ignored = getattr(part, "parameters_to_ignore", ())
            ranks = _ranks_of(getattr(part, "process_group", None))
            found.update((id(p), ranks) for name, p in part.module.named_parameters() if name not in ignored)
    return found


def _ranks_of(group):
    """'0,2' of a process group; '' where it is not known."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    try:
        return ",".join(str(rank) for rank in sorted(c10d._world.pg_group_ranks[group]))
    except (AttributeError, KeyError, TypeError):
        pass
    try:  # before torch 2.0
        return ",".join(str(rank) for rank in sorted(c10d._pg_group_ranks[group]))
    except (AttributeError, KeyError, TypeError):
        return ""
