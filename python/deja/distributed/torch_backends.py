"""Which backends a new group has, and that those for the CPU are Deja's: the others run as without it, and the job is told so."""

import contextlib
import functools
import sys

from deja import engine
from deja.distributed import torch_groups, torch_operations, torch_plugins, torch_stores

_KNOWN = {"", "none", "undefined", "gloo", "nccl", "fake"}  # torch's fake one communicates nothing
_NEVER = {"fake", "threaded"}  # the ranks of the latter are threads
_BY_CLASS = {"mpi"}  # torch's creator of it asks the class, whatever the rank is that it is told
_told = set()


def watch(module, real_gloo):
    """module: torch.distributed.distributed_c10d, whose ProcessGroupGloo is Deja's by now."""
    make = module._new_process_group_helper

    @functools.wraps(make)
    def checked(*args, **kwargs):
        by_device = _by_device(module, kwargs.get("backend", args[3] if len(args) > 3 else None))
        backends = set(by_device.values())
        # One that has the CPU as well as other devices is one group.
        ours = {by_device[device] for device in ("cpu", "any") if device in by_device} - _NEVER
        for name in sorted(backends - ours - _KNOWN):
            _tell(f"operations of the backend {name} are not recorded: it is for {_devices(by_device, name)}")
        is_mixed = len(backends) > 1 and bool(ours | backends & {"gloo"})
        rank = kwargs.get("group_rank", args[1] if len(args) > 1 else None)
        with _replaced(module, ours, is_mixed), torch_stores.unique_ids(rank):
            return _checking(module, make(*args, **kwargs), real_gloo, by_device)

    module._new_process_group_helper = checked
    wrap = module._create_process_group_wrapper

    @functools.wraps(wrap)
    def wrapped(wrapped_pg, *args, **kwargs):
        # A replay has the outcomes of what the ranks compare.
        if isinstance(wrapped_pg, torch_operations.Group) or engine.mode() == engine.REPLAYING:
            return wrapped_pg
        ours, module.ProcessGroupGloo = module.ProcessGroupGloo, real_gloo
        try:
            return wrap(wrapped_pg, *args, **kwargs)
        finally:
            module.ProcessGroupGloo = ours

    module._create_process_group_wrapper = wrapped
    _keep_flight_recorder_off(module)


def _keep_flight_recorder_off(module):
    """torch's hook for groups that do not write its flight recorder themselves asks C++ for backends that Deja's lack."""
    attach = getattr(module, "_maybe_attach_flight_recorder", None)
    if attach is None:
        return

    @functools.wraps(attach)
    def attached(pg, *args, **kwargs):
        if not isinstance(pg, torch_operations.Group):
            attach(pg, *args, **kwargs)

    module._maybe_attach_flight_recorder = attached


@contextlib.contextmanager
def _replaced(module, ours, is_mixed):
    """While a group is made, its backends `ours` are made by Deja."""
    plugins, before, instead = module.Backend._plugins, {}, {}
    for name in ours - _BY_CLASS:
        plugin = plugins.get(name.upper())
        if plugin is not None:
            before[name.upper()] = plugin
            plugins[name.upper()] = plugin._replace(creator_fn=torch_plugins.creator(name, plugin))
    if "mpi" in ours and hasattr(module, "ProcessGroupMPI"):
        instead["ProcessGroupMPI"] = torch_plugins.Mpi(module.ProcessGroupMPI)
    if "ucc" in ours and hasattr(module, "ProcessGroupUCC"):
        instead["ProcessGroupUCC"] = _wrapping(module.ProcessGroupUCC, "ucc")
    if is_mixed:
        from deja.distributed.torch_mixed_groups import MixedGroup

        instead["ProcessGroup"] = MixedGroup
    real = {name: getattr(module, name) for name in instead}
    vars(module).update(instead)
    try:
        yield
    finally:
        vars(module).update(real)
        plugins.update(before)


@functools.lru_cache(maxsize=None)
def _wrapping(real, backend):
    is_replay = engine.mode() == engine.REPLAYING
    return (torch_groups.serving if is_replay else torch_groups.recording)(real, backend)


def _checking(module, made, real_gloo, by_device):
    """made: the new group, in later versions followed by its store. Torch would put its checks around it, and lose the class."""
    group = made[0] if isinstance(made, tuple) else made
    if isinstance(group, torch_operations.Group) and "any" not in by_device and len(set(by_device.values())) == 1:
        group.set_devices(by_device)
    if isinstance(group, torch_operations.Group) and module.get_debug_level() == module.DebugLevel.DETAIL:
        group.check_collectives(real_gloo)
    return made


def _by_device(module, backend):
    """{'cpu': 'gloo', 'cuda': 'nccl'} of 'cpu:gloo,cuda:nccl'; {'any': 'gloo'} where torch knows of no devices."""
    if not hasattr(module, "BackendConfig"):
        return {"any": str(backend).lower()}
    try:
        config = module.BackendConfig(module.Backend(str(backend)))
        return {device: str(name) for device, name in config.get_device_backend_map().items()}
    except Exception:  # torch says itself what is wrong
        return {}


def _devices(by_device, name):
    return ", ".join(sorted(device for device in by_device if by_device[device] == name))


def _tell(text):
    if text not in _told and engine.mode() == engine.RECORDING:
        _told.add(text)
        print(f"deja: {text}", file=sys.stderr, flush=True)
        engine.note(text)
