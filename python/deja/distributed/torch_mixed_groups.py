"""Groups with several backends (cpu:gloo,cuda:nccl): each device keeps its own.

What is on a device of gloo's, or of another backend that Deja wraps, goes to Deja's group for that, everything else to a
group of torch's own, whose NCCL is recorded where it calls the library.
"""

import torch
from torch._C import _distributed_c10d as c10d

from deja.distributed import torch_operations

_OPERATIONS = (
    *("allreduce", "allreduce_coalesced", "broadcast", "reduce", "allgather", "allgather_coalesced"),
    *("_allgather_base", "allgather_into_tensor_coalesced", "gather", "scatter", "reduce_scatter"),
    *("_reduce_scatter_base", "reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base"),
    *("send", "recv", "recv_anysource", "recvAnysource", "allreduce_sparse", "gather_single"),
    *torch_operations.RENAMED,
)


class _StandsForProcessGroup(type(c10d.ProcessGroup)):
    """torch takes a backend that is a ProcessGroup for the whole group. Deja's are for their devices only."""

    def __subclasscheck__(cls, kind):
        return issubclass(kind, c10d.ProcessGroup) and not issubclass(kind, torch_operations.Group)


def _device_of(value):
    """The type of the device of the first tensor in lists of lists; None: there is none."""
    if isinstance(value, torch.Tensor):
        return value.device.type
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_device_of, value)), None)
    return None


class MixedGroup(torch_operations.Group, metaclass=_StandsForProcessGroup):
    """Used as ProcessGroup by torch.distributed while it makes such a group."""

    def __init__(self, store, rank, size, *options):
        super().__init__(rank, size, "")
        self._deja_rest = c10d.ProcessGroup(store, rank, size, *options)
        self._deja_parts = {}  # by type of device
        self._deja_kinds = {}  # of the parts, torch's word for each
        self._deja_default = None  # of torch's kinds of backends

    def _deja_part(self, device):
        """Who does what is on that device."""
        return self._deja_parts.get(device, self._deja_rest)

    def _deja_all(self):
        return (*self._deja_parts.values(), self._deja_rest)

    def _deja_main(self):
        """Who speaks for the whole group."""
        for device, kind in self._deja_kinds.items():
            if kind == self._deja_default:
                return self._deja_parts[device]
        return self._deja_rest

    def _register_backend(self, device, kind, backend=None):
        if isinstance(backend, torch_operations.Group):
            self._deja_parts[device.type], self._deja_kinds[device.type] = backend, kind
        else:
            self._deja_rest._register_backend(device, kind, backend)

    def _set_default_backend(self, kind):
        self._deja_default = kind
        self._deja_rest._set_default_backend(kind)

    def _get_backend(self, device):
        part = self._deja_part(torch.device(device).type)
        return part if part is not self._deja_rest else part._get_backend(device)

    get_backend = _get_backend

    def _deja_pass_on(self, name, args, kwargs):
        return getattr(self._deja_main(), name)(*args, **kwargs)

    def _deja_ask(self, name):
        return getattr(self._deja_main(), name, False)

    def _deja_set(self, name, value):
        for part in self._deja_all():
            setattr(part, name, value)

    @property
    def _device_types(self):
        return [*map(torch.device, self._deja_parts), *self._deja_rest._device_types]

    @property
    def bound_device_id(self):
        return self._deja_rest.bound_device_id

    @bound_device_id.setter
    def bound_device_id(self, device):
        self._deja_rest.bound_device_id = device

    def name(self):
        return self._deja_rest.name()

    _get_backend_name = name

    def getBackendName(self):
        # As in Group: C++ would ask for the backend itself.
        name = self.name()
        return "deja_gloo" if name == "gloo" else name

    def _set_group_name(self, name):
        super()._set_group_name(name)
        for part in self._deja_all():
            part._set_group_name(name)

    setGroupName = _set_group_name

    def _set_group_desc(self, description):
        super()._set_group_desc(description)
        for part in self._deja_all():
            part._set_group_desc(description)

    setGroupDesc = _set_group_desc

    def _has_hooks(self):
        return self._deja_main()._has_hooks()

    def _wait_for_pending_works(self):
        self._deja_main()._wait_for_pending_works()

    def _register_on_completion_hook(self, hook):
        self._deja_main()._register_on_completion_hook(hook)

    def _enable_collectives_timing(self):
        self._deja_rest._enable_collectives_timing()

    def _set_sequence_number_for_group(self):
        self._deja_main()._set_sequence_number_for_group()

    setSequenceNumberForGroup = _set_sequence_number_for_group

    def _get_sequence_number_for_group(self):
        return self._deja_main()._get_sequence_number_for_group()

    getSequenceNumberForGroup = _get_sequence_number_for_group

    def _start_coalescing(self, device):
        self._deja_part(device.type)._start_coalescing(device)

    def _end_coalescing(self, device):
        return self._deja_part(device.type)._end_coalescing(device)

    def barrier(self, *args, **kwargs):
        # As in C++: on the device that it is told, else where the group is at home.
        device = getattr(args[0] if args else kwargs.get("opts"), "device", None)
        if device is not None:
            return self._deja_part(torch.device(device).type).barrier(*args, **kwargs)
        is_nccl = self._deja_default == c10d.ProcessGroup.BackendType.NCCL
        return self._deja_part("cuda" if is_nccl else "cpu").barrier(*args, **kwargs)

    def monitored_barrier(self, *args, **kwargs):
        return self._deja_part("cpu").monitored_barrier(*args, **kwargs)

    def check_collectives(self, real_gloo):
        for part in self._deja_parts.values():
            part.check_collectives(real_gloo)

    def abort(self):
        for part in self._deja_all():
            part.abort()

    def shutdown(self):
        for part in self._deja_all():
            part.shutdown()

    def set_timeout(self, timeout):
        for part in self._deja_all():
            part.set_timeout(timeout)


def _dispatched(name):
    def operation(self, *args, **kwargs):
        device = _device_of(args) or _device_of(list(kwargs.values()))
        return getattr(self._deja_part(device), name)(*args, **kwargs)

    return operation


for _name in _OPERATIONS:
    setattr(MixedGroup, _name, _dispatched(_name))
