"""Deja in a program of Python: naming its steps. Costs nothing where nothing is recorded or replayed.

    import deja

    for batch in deja.steps(loader):
        train(batch)

Nobody has to: the steps of PyTorch's optimizers are found. Deja's own side of PyTorch is in this package, too.
"""

import itertools


def step(number):
    """Step `number` of the training loop begins."""
    from deja import engine

    if engine.mode() != engine.OFF:
        from deja import exceptions, rng

        engine.name_steps()
        exceptions.install()
        rng.begin_step(number)


def steps(iterable, start=0):
    """Goes through `iterable`; each element begins a step."""
    for number, element in zip(itertools.count(start), iterable):
        step(number)
        yield element
