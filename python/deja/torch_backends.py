"""Backends that Deja does not record: the job runs as it does without Deja, and is told so."""

import functools
import sys

from deja import engine, torch_groups

_KNOWN = {"", "none", "undefined", "gloo", "nccl"}
_told = set()


def watch(module, real_gloo):
    """module: torch.distributed.distributed_c10d, whose ProcessGroupGloo is Deja's by now."""
    make = module._new_process_group_helper

    @functools.wraps(make)
    def checked(*args, **kwargs):
        backends = _names(kwargs.get("backend", args[3] if len(args) > 3 else None))
        for name in sorted(backends - _KNOWN):
            _tell(f"operations of the backend {name} are not recorded; those of gloo and nccl are")
        if len(backends) < 2 or "gloo" not in backends:
            return _checking(module, make(*args, **kwargs))
        together = " and ".join(sorted(backends))
        if engine.mode() == engine.REPLAYING:
            raise RuntimeError(f"deja: a group with the backends {together} cannot be replayed")
        _tell(
            f"a group has the backends {together}: what gloo does there is not recorded, and the job cannot be "
            "replayed; with one backend a group it could be"
        )
        ours, module.ProcessGroupGloo = module.ProcessGroupGloo, real_gloo
        try:
            return make(*args, **kwargs)
        finally:
            module.ProcessGroupGloo = ours

    module._new_process_group_helper = checked
    wrap = module._create_process_group_wrapper

    @functools.wraps(wrap)
    def wrapped(wrapped_pg, *args, **kwargs):
        return wrapped_pg if isinstance(wrapped_pg, torch_groups.Group) else wrap(wrapped_pg, *args, **kwargs)

    module._create_process_group_wrapper = wrapped


def _checking(module, made):
    """made: the new group, in later versions followed by its store. Torch would put its checks around it, and lose the class."""
    group = made[0] if isinstance(made, tuple) else made
    if isinstance(group, torch_groups.Group) and module.get_debug_level() == module.DebugLevel.DETAIL:
        group.check_collectives()
    return made


def _names(backend):
    """{'gloo', 'nccl'} of 'cpu:gloo,cuda:nccl'."""
    parts = str(backend).lower().split(",")
    return {part.rpartition(":")[2] for part in parts}


def _tell(text):
    if text not in _told and engine.mode() == engine.RECORDING:
        _told.add(text)
        print(f"deja: {text}", file=sys.stderr, flush=True)
        engine.note(text)
