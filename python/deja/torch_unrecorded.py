"""Parts of torch.distributed that Deja does not record: the recording says so when the program uses them, and a replay ends there."""

import functools

from deja import engine

_PARTS = {
    "torch.distributed.rpc": (
        "init_rpc",
        "torch.distributed.rpc (TensorPipe): its messages are not recorded, and a replay ends at init_rpc; "
        "process groups are recorded",
    ),
    "torch.distributed._symmetric_memory": (
        "rendezvous",
        "symmetric memory of torch.distributed: what other ranks write there is not recorded, and a replay ends at its "
        "rendezvous; process groups are recorded",
    ),
}


def install(module):
    name, what = _PARTS[module.__name__]
    real = getattr(module, name, None)
    if engine.mode() == engine.OFF or real is None:
        return

    @functools.wraps(real)
    def told(*args, **kwargs):
        engine.not_recorded(what)
        made = real(*args, **kwargs)
        engine.not_recorded(what)  # the process may have become a rank meanwhile
        return made

    setattr(module, name, told)
