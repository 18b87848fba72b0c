"""What the process groups of a recording and of a replay share: their names, and which tensors each operation reads
and writes."""

import torch
from torch._C import _distributed_c10d as c10d

from deja import engine
from deja.interpreter import python_stack
from deja.distributed import call_names, torch_flights, torch_passing, torch_reductions, torch_works
from deja.distributed.torch_dense import Dense, dtype_of, flat

on_allreduce = None  # called with the tensors of each, before it is made


class RealMethod:
    """What does an operation: call, and whether that is a plug-in's code of Python's."""

    __slots__ = ("call", "is_python")

    def __init__(self, call, is_python):
        self.call, self.is_python = call, is_python


class Group(c10d.ProcessGroup):
    """A group of whichever kind: it has what torch asks of a group, and of its backend, which is this object, too."""

    def __init__(self, rank, size, backend):
        super().__init__(rank, size)
        self._deja_rank, self._deja_size, self._deja_backend = rank, size, backend
        self._deja_name = ""
        self._deja_description = ""
        self._deja_sequence = 0
        self._deja_number = torch_passing.next_number()
        self._deja_methods = {}  # RealMethod by name

    bound_device_id = None

    def rank(self):
        return self._deja_rank

    def size(self):
        return self._deja_size

    def name(self):
        return self._deja_backend

    _get_backend_name = name
    # C++ asks for this one in each backward pass. An attribute that is not there costs an exception each time; one of
    # C++'s own is not asked for again.
    getSize = c10d.ProcessGroup.size

    def getBackendName(self):
        # What C++ asks: of a group that says "gloo" it takes for granted that it is ProcessGroupGloo.
        return "deja_" + self._deja_backend

    def _get_backend(self, device):
        if torch.device(device).type not in self._deja_devices:
            raise RuntimeError(f"No backend type associated with device type {torch.device(device).type}")
        return self

    get_backend = _get_backend
    _deja_devices = ("cpu", "cuda")  # that have this group as their backend
    _deja_shown_devices = ("cpu",)

    @property
    def _device_types(self):
        return [torch.device(device) for device in self._deja_shown_devices]

    def set_devices(self, devices):
        """Those that torch has this backend for, where it says so."""
        self._deja_shown_devices = tuple(devices)
        self._deja_devices = {*self._deja_devices, *devices}

    @property
    def group_name(self):
        return self._deja_name

    def getGroupName(self):
        return self._deja_name

    def _set_group_name(self, name):
        self._deja_name = name

    setGroupName = _set_group_name

    @property
    def group_desc(self):
        return self._deja_description

    def getGroupDesc(self):
        return self._deja_description

    def _set_group_desc(self, description):
        self._deja_description = description

    setGroupDesc = _set_group_desc

    def _deja_split_name(self, args, kwargs):
        return f"{self._deja_name}/{of_split(args, kwargs, 2, 'group_name')}"

    def _deja_like_its_parent(self, group, args, kwargs):
        """group: a part of this one."""
        group._deja_shown_devices, group._deja_devices = self._deja_shown_devices, self._deja_devices
        group._deja_name = of_split(args, kwargs, 2, "group_name")
        group._deja_description = of_split(args, kwargs, 3, "group_desc")
        return group

    def _set_default_backend(self, _):
        pass

    def _has_hooks(self):
        return False

    def _wait_for_pending_works(self):
        pass

    def _set_sequence_number_for_group(self):
        pass

    setSequenceNumberForGroup = _set_sequence_number_for_group

    def _get_sequence_number_for_group(self):
        return self._deja_sequence

    getSequenceNumberForGroup = _get_sequence_number_for_group

    # Operations. Python and C++ call them with an options object; Python also in shorter forms. Their tensors are one,
    # or lists of lists of them.

    def allreduce(self, tensors, *args, **kwargs):
        if on_allreduce is not None:
            on_allreduce(flat(tensors))
        op = torch_reductions.number_of(args[0] if args else _first(args, kwargs))
        return self._do("allreduce", tensors, tensors, (tensors, *args), kwargs, op=op)

    def allreduce_coalesced(self, tensors, *args, **kwargs):
        op = torch_reductions.number_of(_first(args, kwargs))
        return self._do("allreduce_coalesced", tensors, tensors, (tensors, *args), kwargs, op=op)

    def broadcast(self, tensors, *args, **kwargs):
        root = _root(args, kwargs)
        read, written = (tensors, []) if root == self._deja_rank else ([], tensors)
        return self._do("broadcast", read, written, (tensors, *args), kwargs, peer=root)

    def reduce(self, tensors, *args, **kwargs):
        root = _root(args, kwargs)
        # The shorter form has the root before the reduction. Written on all ranks: gloo leaves what it has computed
        # half-way in the others' tensors.
        opts = _first(args, kwargs)
        op = torch_reductions.number_of(args[1] if isinstance(opts, int) and len(args) > 1 else opts)
        return self._do("reduce", tensors, tensors, (tensors, *args), kwargs, op=op, peer=root)

    def allgather(self, outputs, inputs, *args, **kwargs):
        return self._do("allgather", inputs, outputs, (outputs, inputs, *args), kwargs)

    def allgather_coalesced(self, outputs, inputs, *args, **kwargs):
        return self._do("allgather_coalesced", inputs, outputs, (outputs, inputs, *args), kwargs)

    def _allgather_base(self, output, input, *args, **kwargs):
        return self._do("_allgather_base", [input], [output], (output, input, *args), kwargs)

    def allgather_into_tensor_coalesced(self, outputs, inputs, *args, **kwargs):
        return self._do(
            "allgather_into_tensor_coalesced", inputs, outputs, (outputs, inputs, *args), kwargs
        )

    def gather_single(self, output, input, *args, **kwargs):
        root = _root(args, kwargs)
        outputs = [output] if root == self._deja_rank else []
        return self._do("gather_single", [input], outputs, (output, input, *args), kwargs, peer=root)

    def gather(self, outputs, inputs, *args, **kwargs):
        root = _root(args, kwargs)
        return self._do("gather", inputs, outputs, (outputs, inputs, *args), kwargs, peer=root)

    def scatter(self, outputs, inputs, *args, **kwargs):
        root = _root(args, kwargs)
        return self._do("scatter", inputs, outputs, (outputs, inputs, *args), kwargs, peer=root)

    def reduce_scatter(self, outputs, inputs, *args, **kwargs):
        op = torch_reductions.number_of(_first(args, kwargs))
        return self._do("reduce_scatter", inputs, outputs, (outputs, inputs, *args), kwargs, op=op)

    def _reduce_scatter_base(self, output, input, *args, **kwargs):
        op = torch_reductions.number_of(_first(args, kwargs))
        return self._do("_reduce_scatter_base", [input], [output], (output, input, *args), kwargs, op=op)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, *args, **kwargs):
        op = torch_reductions.number_of(_first(args, kwargs))
        return self._do(
            "reduce_scatter_tensor_coalesced", inputs, outputs, (outputs, inputs, *args), kwargs, op=op
        )

    def allreduce_sparse(self, tensors, *args, **kwargs):
        op = torch_reductions.number_of(_first(args, kwargs))
        return self._do("allreduce_sparse", tensors, tensors, (tensors, *args), kwargs, op=op)

    def alltoall(self, outputs, inputs, *args, **kwargs):
        return self._do("alltoall", inputs, outputs, (outputs, inputs, *args), kwargs)

    def alltoall_base(self, output, input, *args, **kwargs):
        return self._do("alltoall_base", [input], [output], (output, input, *args), kwargs)

    def barrier(self, *args, **kwargs):
        return self._do("barrier", [], [], args, kwargs)

    def monitored_barrier(self, *args, **kwargs):
        self._do("monitored_barrier", [], [], args, kwargs, is_blocking=True)

    def send(self, tensors, dst, tag=0):
        return self._do("send", tensors, [], (tensors, dst, tag), {}, peer=dst, tag=tag)

    def recv(self, tensors, src, tag=0):
        return self._do("recv", [], tensors, (tensors, src, tag), {}, peer=src, tag=tag)

    def recv_anysource(self, tensors, tag=0):
        return self._do("recv_anysource", [], tensors, (tensors, tag), {}, tag=tag)

    recvAnysource = recv_anysource  # what C++ calls

    def _do(self, name, inputs, outputs, args, kwargs, is_blocking=False, op=0, peer=0, tag=0):
        # C++ calls this from a training loop with its caches full of tensors. The amount of Python's code counts.
        self._deja_sequence += 1
        if call_names.are_wanted and self._deja_is_for_python:
            call_names.tell(flat(inputs) or flat(outputs), 2)
        real = self._deja_methods.get(name) or self._deja_find_method(name)
        function = _NAMES.get(name) or operation_name(name)
        stack = 0 if python_stack.IS_FOUND else python_stack.here(2)
        copies = None
        made = engine.operation(
            function, real.call, args, kwargs, inputs, outputs, self._deja_group, op, peer, tag, stack
        )
        if made is None:
            copies, made = _with_copies(
                function, real.call, args, kwargs, inputs, outputs, self._deja_group, op, peer, tag, stack
            )
        value, operation, answer, inputs, outputs, written, dtype = made
        if answer is not None:
            outcome = engine.served(self._deja_group, operation, answer)
            if copies is not None:
                copies.write_back()
            if is_blocking:
                return torch_works.ServedWork(outcome, outputs).wait()
            return torch_works.served(name, outcome, outputs)
        if operation == 0:  # not recorded: a plug-in makes it as part of an operation of its own
            return value
        # What code of Python's writes is a change as any other one.
        is_watched = torch_flights.are_wanted and not real.is_python
        look = None
        if is_watched or copies is not None or name == "recv_anysource":
            flight = torch_flights.watched(name, inputs, outputs, self._deja_is_for_python) if is_watched else None
            # Asking another work for it raises, and that takes a millisecond.
            source = value._source_rank if name == "recv_anysource" else None
            look = torch_works.last_look(operation, copies, source, flight)
        end = engine.ending(self._deja_group, operation, dtype, written, look)
        if is_blocking:
            return end(None, ())
        return self._deja_recorded(name, self._deja_watcher, value, end, outputs)

    _deja_recorded = staticmethod(torch_works.recorded)
    # Whether code of the program, or of a library of Python's, chooses the tensors and waits for them.
    _deja_is_for_python = True


def _with_copies(function, real, args, kwargs, inputs, outputs, group, op, peer, tag, stack):
    """The Dense of what is written, and what engine.operation() returns for tensors that it can take."""
    in_place = inputs is outputs
    outputs = flat(outputs)
    copies = Dense(outputs, read=in_place)
    inputs = outputs if in_place else flat(inputs)
    read = copies if in_place else Dense(inputs, read=True)  # up to the end of the call
    dtype = dtype_of(read.dtype, copies.dtype)
    value, _, operation, answer = engine.group_call(
        function, real, args, kwargs, read.pieces, copies.pieces, group, dtype, op, peer, tag, stack, 0, None, 0
    )
    return copies, (value, operation, answer, inputs, outputs, copies.pieces, dtype)


# Since torch 2.13 these names are for what had others before.
RENAMED = {
    "all_gather_single": "_allgather_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "reduce_scatter_single": "_reduce_scatter_base",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
    "all_to_all_single": "alltoall_base",
    "gather_into_tensor": "gather_single",
}
NEWER = {old: new for new, old in RENAMED.items() if new != "gather_into_tensor"}
for _new, _old in RENAMED.items():
    setattr(Group, _new, getattr(Group, _old))

torch_passing.add_to(Group)

_NAMES = {  # of operations in a trace, by those of their methods
    "gather_single": "c10d_gather",
    "allreduce_sparse": "c10d_allreduce",
}


def operation_name(method):
    """The name of an operation in a trace."""
    return _NAMES.setdefault(method, "c10d_" + method.lstrip("_"))


def _first(args, kwargs):
    """The options of an operation, or in a shorter form its reduction."""
    return args[0] if args else kwargs.get("opts", kwargs.get("op"))


def of_split(args, kwargs, position, name):
    """The arguments of split_group after the ranks."""
    return (args[position] if len(args) > position else kwargs.get(name)) or ""


def _root(args, kwargs):
    first = args[0] if args else kwargs.get("opts", kwargs.get("root", 0))
    return first if isinstance(first, int) else first.rootRank
