"""State of a training loop for Deja's checkpoints (docs/PYTORCH.md, Checkpoints).

    import deja, deja.torch

    deja.torch.watch(model, optimizer, scheduler, scaler, every=100)
    for epoch in deja.epochs(range(10)):
        for batch in deja.steps(loader):
            ...

Nothing happens where nothing is recorded or replayed.

TracePG serves a recorded rank to code in a plain process, such as a notebook's:

    with deja.torch.TracePG("run.deja", rank=2):
        train.main()
"""

_PASSED = 2  # steps of the optimizer before the first step of Deja's


def watch(*objects, every=None, gradients=False, **named):
    """Registers what a step of the loop begins with: modules, optimizers, generators, dictionaries that are updated in
    place. It also takes whatever has state_dict() and load_state_dict() (schedulers, scalers, counters of the
    program's own). Before the first step, once. Names are those of the arguments, or of the kinds of object.

    every: steps between two checkpoints, besides those of `deja record --checkpoint-every`. gradients: they are part
    of it. Where gradients are accumulated over steps.

    What torch's own optimizers do in each step is recorded, too: `deja pack --predict` makes use of it.
    """
    from deja import engine

    if engine.mode() == engine.OFF:
        return
    from deja.interpreter import exceptions
    from deja.training import torch_watch

    engine.name_steps()
    exceptions.install()
    torch_watch.watch(objects, named, every, gradients, _PASSED)


_SERVING = {"TracePG": "trace_groups", "Divergence": "divergence", "RecordingEnds": "divergence"}


def __getattr__(name):
    """TracePG, Divergence and RecordingEnds: torch.distributed is imported for them alone."""
    if name not in _SERVING:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    import importlib

    return getattr(importlib.import_module(f"deja.serving.{_SERVING[name]}"), name)
