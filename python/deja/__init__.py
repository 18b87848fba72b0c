"""Deja in a program of Python: naming its steps. Costs nothing where nothing is recorded or replayed.

    import deja

    for epoch in deja.epochs(range(10)):
        for batch in deja.steps(loader):
            train(batch)

It is optional: the steps of PyTorch's optimizers are found. A replay that starts late needs deja.torch.watch. Deja's
own side of PyTorch is in this package, too.
"""


def step(number):
    """Step `number` of the training loop begins. Returns the step to go on with: another one only in a replay that
    starts late."""
    return _loop().begin_step(number) if _is_on() else number


def steps(iterable, start=None):
    """Goes through `iterable`; each element is a step. They are counted from the last step on, or from `start`."""
    if not _is_on():
        yield from iterable
        return
    loop = _loop()
    if start is not None:
        loop.number = start
    yield from loop.go_through(iterable)


def epochs(iterable):
    """Goes through `iterable`, where each element is a pass over the data: for epoch in deja.epochs(range(10))."""
    if not _is_on():
        return iter(iterable)
    from deja.loop import Epochs

    return Epochs(iterable, _loop())


def __getattr__(name):
    # Looked up at the first question: a program that is recorded reads no file more.
    if name != "__version__":
        raise AttributeError(f"module 'deja' has no attribute {name!r}")
    from deja.version import VERSION

    return VERSION


def _is_on():
    from deja import engine

    return engine.mode() != engine.OFF


def _loop():
    from deja import engine
    from deja.interpreter import exceptions
    from deja.loop import LOOP

    engine.name_steps()
    exceptions.install()
    return LOOP
