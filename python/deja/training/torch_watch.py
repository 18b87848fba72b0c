"""deja.torch.watch, where there is something to do."""

import functools

import torch

from deja.training import torch_state, torch_steps, torch_updates
from deja.loop import LOOP


def watch(objects, named, every, gradients, passed):
    """passed: how many steps each optimizer has made when the first step of Deja's begins."""
    names = {**_names(objects), **named}
    held = [(name, thing) for name, thing in names.items() if thing is not None]
    tensors, fixes, updaters = [], [], []
    for name, thing in held:
        _add(name, thing, gradients, tensors, fixes, updaters)
    optimizers = [thing for _, thing in held if isinstance(thing, torch.optim.Optimizer)]
    begun = 0

    def prepare(register_loop):
        nonlocal begun
        begun += 1
        if min(map(torch_steps.steps_of, optimizers), default=begun - 1) < passed:
            return False
        register_loop()
        for fix in fixes:
            fix()
        for updater in updaters:
            updater.begin()
        return True

    def refresh():
        for part in tensors:
            part.refresh()
        for updater in updaters:
            updater.refresh()

    LOOP.watch(prepare, refresh, every)


def _names(objects):
    """By kind; the second of a kind gets a number."""
    names = {}
    for thing in objects:
        kind = next((name for kind, name in _KINDS if isinstance(thing, kind)), type(thing).__name__.lower())
        name, number = kind, 1
        while name in names:
            number += 1
            name = f"{kind}{number}"
        names[name] = thing
    return names


_KINDS = (
    (torch.nn.Module, "model"),
    (torch.optim.Optimizer, "optimizer"),
    (getattr(torch.optim.lr_scheduler, "LRScheduler", torch.optim.lr_scheduler._LRScheduler), "scheduler"),
    (torch.Generator, "generator"),
    (dict, "state"),
)


def _add(name, thing, gradients, tensors, fixes, updaters):
    if isinstance(thing, torch.nn.Module):
        tensors.append(torch_state.of_module(name, thing))
        fixes.append(tensors[-1].fix)
        if gradients:
            fixes.append(torch_state.Gradients(f"{name}/gradients", thing).fix)
    elif isinstance(thing, torch.optim.Optimizer):
        inner = getattr(thing, "optim", None)  # ZeroRedundancyOptimizer's, of this rank's part
        for part, each in ((name, thing), (f"{name}/local", inner)):
            if isinstance(each, torch.optim.Optimizer):
                optimizer = torch_state.Optimizer(part, each)
                tensors.append(optimizer.tensors)
                fixes.append(optimizer.fix)
                if torch_updates.can_be_told(each):
                    updaters.append(torch_updates.Updates(each))
    elif isinstance(thing, torch.Generator):
        fixes.append(functools.partial(torch_state.of_generator, name, thing))
    elif hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict"):
        fixes.append(functools.partial(torch_state.of_state_dict, name, thing))
    elif isinstance(thing, dict):
        fixes.append(functools.partial(torch_state.of_dict, name, thing))
    else:
        raise TypeError(f"deja.torch.watch: '{name}' is a {type(thing).__name__}, which has no state_dict()")
