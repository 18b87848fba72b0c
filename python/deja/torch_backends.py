"""Which backends a new group has: those that Deja does not record run as without it, and the job is told so."""

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
        backends = _names(module, kwargs.get("backend", args[3] if len(args) > 3 else None))
        for name in sorted(backends - _KNOWN):
            _tell(f"operations of the backend {name} are not recorded; those of gloo and nccl are")
        if len(backends) < 2 or "gloo" not in backends:
            return _checking(module, make(*args, **kwargs))
        from deja.torch_mixed_groups import MixedGroup

        real, module.ProcessGroup = module.ProcessGroup, MixedGroup
        try:
            return _checking(module, make(*args, **kwargs))
        finally:
            module.ProcessGroup = real

    module._new_process_group_helper = checked
    wrap = module._create_process_group_wrapper

    @functools.wraps(wrap)
    def wrapped(wrapped_pg, *args, **kwargs):
        # A replay has the outcomes of what the ranks compare.
        if isinstance(wrapped_pg, torch_groups.Group) or engine.mode() == engine.REPLAYING:
            return wrapped_pg
        ours, module.ProcessGroupGloo = module.ProcessGroupGloo, real_gloo
        try:
            return wrap(wrapped_pg, *args, **kwargs)
        finally:
            module.ProcessGroupGloo = ours

    module._create_process_group_wrapper = wrapped


def _checking(module, made):
    """made: the new group, in later versions followed by its store. Torch would put its checks around it, and lose the class."""
    group = made[0] if isinstance(made, tuple) else made
    if isinstance(group, torch_groups.Group) and module.get_debug_level() == module.DebugLevel.DETAIL:
        group.check_collectives()
    return made


def _names(module, backend):
    """{'gloo', 'nccl'} of 'cpu:gloo,cuda:nccl'."""
    text = str(backend).lower()
    if text == "undefined":  # torch chooses, by the machine
        return {str(name) for name in module.BackendConfig(module.Backend(text)).get_device_backend_map().values()}
    return {part.rpartition(":")[2] for part in text.split(",")}


def _tell(text):
    if text not in _told and engine.mode() == engine.RECORDING:
        _told.add(text)
        print(f"deja: {text}", file=sys.stderr, flush=True)
        engine.note(text)
