"""Process groups of torch.distributed whose operations are recorded, and answered in a replay.

Recorded stands between the program and the real group (gloo, mpi, a plug-in's): it hands every operation with its
tensors to the recorder, has the real group do it, and notes how it ended. Served has no real group behind it.
"""

import datetime
import functools
import hashlib

import torch
from torch._C import _distributed_c10d as c10d

from deja import engine, python_stack, torch_passing, torch_versions, torch_works
from deja.torch_dtypes import SIZED_DTYPES

_BYTES = 255
_STRIDED = torch.strided
_TIMEOUT = datetime.timedelta(minutes=30)  # torch's own, where none is given

on_allreduce = None  # called with the tensors of each, before it is made

# ncclRedOp_t; c10d's others are -1 less their number.
_NUMBERS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3, "AVG": 4, "BAND": -1, "BOR": -2, "BXOR": -3}
_REDUCTIONS = [(getattr(c10d.ReduceOp, name), n) for name, n in _NUMBERS.items() if hasattr(c10d.ReduceOp, name)]


def _flat(tensors):
    """The tensors of lists of lists, one behind the other."""
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    flat = []
    for tensor in tensors or ():
        if isinstance(tensor, torch.Tensor):
            flat.append(tensor)
        else:
            flat += _flat(tensor)
    return flat


def _reduction(opts):
    op = getattr(opts, "reduceOp", opts)
    if op is None:
        return 0
    for known, number in _REDUCTIONS:
        if op == known:
            return number
    return -9


def _strided(tensor):
    """Sparse ones with their zeros: how many elements a sparse result has is not known before."""
    return tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()


class Dense:
    """Tensors as runs of bytes: themselves, or copies of those that have gaps or lie elsewhere."""

    __slots__ = ("_tensors", "_copies", "kind", "pieces")

    def __init__(self, tensors, read):
        self._tensors, self._copies = tensors, ()
        kind, words = None, []
        for tensor in tensors:
            if not (tensor.is_cpu and tensor.layout is _STRIDED and tensor.is_contiguous()):
                tensor = self._copied(tensor, read)
            own = tensor.dtype
            kind = own if kind is None or kind is own else _BYTES
            known = SIZED_DTYPES.get(own)
            words.append(tensor.data_ptr())
            words.append(tensor.numel() * (tensor.element_size() if known is None else known[1]))
        self.kind = kind  # of all the tensors; _BYTES where they differ; None: there is none
        self.pieces = engine.Pieces(words)

    def _copied(self, tensor, read):
        copy = _strided(tensor).cpu().contiguous() if read else torch.empty(tensor.shape, dtype=tensor.dtype)
        self._copies = (*self._copies, (tensor, copy))
        return copy

    def read_back(self):
        """The copies hold what the tensors hold now."""
        for tensor, copy in self._copies:
            copy.copy_(_strided(tensor))

    def write_back(self):
        """The tensors hold what the copies hold."""
        for tensor, copy in self._copies:
            if tensor.layout is torch.strided:
                tensor.detach().copy_(copy)
            else:  # a detached one has indices and values of its own
                with torch.no_grad():
                    tensor.copy_(copy.to_sparse())


def _dtype_of(read, written):
    """The number of the element type of all these tensors."""
    if read.kind is written.kind or written.kind is None:
        kind = read.kind
    else:
        kind = written.kind if read.kind is None else _BYTES
    return SIZED_DTYPES.get(kind, (_BYTES,))[0]


class Group(c10d.ProcessGroup):
    """What recorded and served groups share: which tensors each operation reads and writes."""

    def __init__(self, rank, size, backend):
        super().__init__(rank, size)
        self._deja_rank, self._deja_size, self._deja_backend = rank, size, backend
        self._deja_name = ""
        self._deja_description = ""
        self._deja_sequence = 0
        self._deja_number = torch_passing.next_number()

    # torch.distributed asks these of a group or of its backend, which is this object, too.
    bound_device_id = None

    def rank(self):
        return self._deja_rank

    def size(self):
        return self._deja_size

    def name(self):
        return self._deja_backend

    _get_backend_name = name

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
        return f"{self._deja_name}/{_of_split(args, kwargs, 2, 'group_name')}"

    def _deja_like_its_parent(self, group, args, kwargs):
        """group: a part of this one."""
        group._deja_shown_devices, group._deja_devices = self._deja_shown_devices, self._deja_devices
        group._deja_name = _of_split(args, kwargs, 2, "group_name")
        group._deja_description = _of_split(args, kwargs, 3, "group_desc")
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

    # Operations. Python and C++ call them with an options object; Python also in shorter forms.

    def allreduce(self, tensors, *args, **kwargs):
        flat = _flat(tensors)
        if on_allreduce is not None:
            on_allreduce(flat)
        return self._do("allreduce", flat, flat, (tensors, *args), kwargs, op=_reduction(_first(args, kwargs)))

    def allreduce_coalesced(self, tensors, *args, **kwargs):
        flat = _flat(tensors)
        return self._do(
            "allreduce_coalesced", flat, flat, (tensors, *args), kwargs, op=_reduction(_first(args, kwargs))
        )

    def broadcast(self, tensors, *args, **kwargs):
        flat, root = _flat(tensors), _root(args, kwargs)
        mine = flat if root == self._deja_rank else []
        return self._do("broadcast", mine, [] if mine else flat, (tensors, *args), kwargs, peer=root)

    def reduce(self, tensors, *args, **kwargs):
        flat, root = _flat(tensors), _root(args, kwargs)
        # The shorter form has the root before the reduction. Written on all ranks: gloo leaves what it has computed
        # half-way in the others' tensors.
        opts = _first(args, kwargs)
        op = _reduction(args[1] if isinstance(opts, int) and len(args) > 1 else opts)
        return self._do("reduce", flat, flat, (tensors, *args), kwargs, op=op, peer=root)

    def allgather(self, outputs, inputs, *args, **kwargs):
        return self._do("allgather", _flat(inputs), _flat(outputs), (outputs, inputs, *args), kwargs)

    def allgather_coalesced(self, outputs, inputs, *args, **kwargs):
        return self._do("allgather_coalesced", _flat(inputs), _flat(outputs), (outputs, inputs, *args), kwargs)

    def _allgather_base(self, output, input, *args, **kwargs):
        return self._do("_allgather_base", [input], [output], (output, input, *args), kwargs)

    def allgather_into_tensor_coalesced(self, outputs, inputs, *args, **kwargs):
        return self._do(
            "allgather_into_tensor_coalesced", _flat(inputs), _flat(outputs), (outputs, inputs, *args), kwargs
        )

    def gather_single(self, output, input, *args, **kwargs):
        root = _root(args, kwargs)
        outputs = [output] if root == self._deja_rank else []
        return self._do("gather_single", [input], outputs, (output, input, *args), kwargs, peer=root)

    def gather(self, outputs, inputs, *args, **kwargs):
        root = _root(args, kwargs)
        return self._do("gather", _flat(inputs), _flat(outputs), (outputs, inputs, *args), kwargs, peer=root)

    def scatter(self, outputs, inputs, *args, **kwargs):
        root = _root(args, kwargs)
        return self._do("scatter", _flat(inputs), _flat(outputs), (outputs, inputs, *args), kwargs, peer=root)

    def reduce_scatter(self, outputs, inputs, *args, **kwargs):
        op = _reduction(_first(args, kwargs))
        return self._do("reduce_scatter", _flat(inputs), _flat(outputs), (outputs, inputs, *args), kwargs, op=op)

    def _reduce_scatter_base(self, output, input, *args, **kwargs):
        op = _reduction(_first(args, kwargs))
        return self._do("_reduce_scatter_base", [input], [output], (output, input, *args), kwargs, op=op)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, *args, **kwargs):
        op = _reduction(_first(args, kwargs))
        return self._do(
            "reduce_scatter_tensor_coalesced", _flat(inputs), _flat(outputs), (outputs, inputs, *args), kwargs, op=op
        )

    def allreduce_sparse(self, tensors, *args, **kwargs):
        flat = _flat(tensors)
        return self._do("allreduce_sparse", flat, flat, (tensors, *args), kwargs, op=_reduction(_first(args, kwargs)))

    def alltoall(self, outputs, inputs, *args, **kwargs):
        return self._do("alltoall", _flat(inputs), _flat(outputs), (outputs, inputs, *args), kwargs)

    def alltoall_base(self, output, input, *args, **kwargs):
        return self._do("alltoall_base", [input], [output], (output, input, *args), kwargs)

    def barrier(self, *args, **kwargs):
        return self._do("barrier", [], [], args, kwargs)

    def monitored_barrier(self, *args, **kwargs):
        self._do("monitored_barrier", [], [], args, kwargs, is_blocking=True)

    def send(self, tensors, dst, tag=0):
        return self._do("send", _flat(tensors), [], (tensors, dst, tag), {}, peer=dst, tag=tag)

    def recv(self, tensors, src, tag=0):
        return self._do("recv", [], _flat(tensors), (tensors, src, tag), {}, peer=src, tag=tag)

    def recv_anysource(self, tensors, tag=0):
        return self._do("recv_anysource", [], _flat(tensors), (tensors, tag), {}, tag=tag)

    recvAnysource = recv_anysource  # what C++ calls

    def _do(self, name, inputs, outputs, args, kwargs, is_blocking=False, op=0, peer=0, tag=0):
        self._deja_sequence += 1
        in_place = inputs is outputs
        written = Dense(outputs, read=in_place)
        read = written if in_place else Dense(inputs, read=True)
        dtype = _dtype_of(read, written)
        outcome = engine.group_call(
            _NAMES.get(name) or _name_of(name),
            lambda: self._make(name, args, kwargs),
            read.pieces,
            written.pieces,
            self._deja_group,
            dtype,
            op,
            peer,
            tag,
            python_stack=python_stack.here(2),
        )
        if outcome.served:
            written.write_back()
            if is_blocking:
                return torch_works.ServedWork(outcome, outputs).wait()
            return torch_works.served(name, outcome, outputs)
        if outcome.operation == 0:  # not recorded: a plug-in makes it as part of an operation of its own
            return outcome.value
        ending = torch_works.Ending(outcome, dtype, written)
        if is_blocking:
            return ending.succeeded()
        return torch_works.recorded(name, self._deja_watcher, outcome.value, ending, outputs)


# Since torch 2.13 these names are for what had others before.
RENAMED = {
    "all_gather_single": "_allgather_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "reduce_scatter_single": "_reduce_scatter_base",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
    "all_to_all_single": "alltoall_base",
    "gather_into_tensor": "gather_single",
}
_NEWER = {old: new for new, old in RENAMED.items() if new != "gather_into_tensor"}
for _new, _old in RENAMED.items():
    setattr(Group, _new, getattr(Group, _old))

torch_passing.add_to(Group)

_NAMES = {  # of operations in a trace, by those of their methods
    "gather_single": "c10d_gather",
    "allreduce_sparse": "c10d_allreduce",
}


def _name_of(method):
    return _NAMES.setdefault(method, "c10d_" + method.lstrip("_"))


def _first(args, kwargs):
    """The options of an operation, or in a shorter form its reduction."""
    return args[0] if args else kwargs.get("opts", kwargs.get("op"))


def _of_split(args, kwargs, position, name):
    """What split_group is told, behind the ranks."""
    return (args[position] if len(args) > position else kwargs.get(name)) or ""


def _root(args, kwargs):
    first = args[0] if args else kwargs.get("opts", kwargs.get("root", 0))
    return first if isinstance(first, int) else first.rootRank


def identity_of(ranks, name):
    """The same number in all ranks of a group."""
    text = name + ":" + ",".join(str(rank) for rank in ranks)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


class Recorded(Group):
    """A group with the real one behind it, which `make` makes: of C++, or a plug-in's of Python."""

    def __init__(self, backend, store, rank, size, name, make, timeout=None):
        super().__init__(rank, size, backend)

        def make_both():
            made = make()
            return made, as_group(made, backend, store, rank, size)

        outcome = new_group(rank, size, name, make_both)
        self._deja_real, self._deja_as_group = outcome.value
        self._deja_group = outcome.group
        self._deja_watcher = torch_works.Watcher()
        self._deja_store, self._deja_timeout = store, timeout or _TIMEOUT

    def check_collectives(self, real_gloo):
        """As torch does for TORCH_DISTRIBUTED_DEBUG=DETAIL: a second group compares what the ranks call."""
        is_plain = self._deja_real is not self._deja_as_group or self._deja_backend in ("gloo", "ucc")
        if self._deja_backend == "mpi" or not is_plain:
            return
        store, rank, size = self._deja_store, self._deja_rank, self._deja_size
        with engine.library():
            helper = real_gloo(c10d.PrefixStore("pg_wrapper", store), rank, size, timeout=self._deja_timeout)
            checking = c10d._ProcessGroupWrapper(self._deja_real, helper)
            self._deja_as_group = as_group(checking, self._deja_backend, store, rank, size)

    def __getattr__(self, name):
        # What only this backend has: its options, a plug-in's own methods.
        if name.startswith(("_deja_", "__")):
            raise AttributeError(name)
        value = getattr(self._deja_real, name)
        if not callable(value):
            return value
        torch_passing.recorded_call(self, f"has {name}", lambda: True, (), {})
        return torch_passing.method(name).__get__(self)

    def _make(self, name, args, kwargs):
        return self._deja_real_of(name)(*args, **kwargs)

    def _deja_real_of(self, name):
        """That of the real group, or what its backend alone has."""
        kind, newer = type(self._deja_as_group), _NEWER.get(name)
        # A plug-in's group may define but the name of today.
        if newer and getattr(kind, newer, None) is not getattr(c10d.ProcessGroup, newer, None):
            name = newer
        has_it = hasattr(kind, name)
        return getattr(self._deja_as_group if has_it else self._deja_real, name)

    def _deja_pass_on(self, name, args, kwargs):
        return torch_passing.recorded_call(self, name, self._deja_real_of(name), args, kwargs)

    def _deja_ask(self, name):
        return torch_passing.recorded_call(self, name, lambda: self._deja_real_of(name), (), {})

    @property
    def _device_types(self):
        if self._deja_real is self._deja_as_group and hasattr(self._deja_real, "_device_types"):
            return self._deja_ask("_device_types")  # a plug-in's group, without a backend: it may have none
        return super()._device_types

    def _deja_set(self, name, value):
        has_it = hasattr(type(self._deja_as_group), name)
        setattr(self._deja_as_group if has_it else self._deja_real, name, value)

    def get_group_store(self):
        return self._deja_store

    def split_group(self, ranks, *args, **kwargs):
        split = functools.partial(self._deja_as_group.split_group, ranks, *args, **kwargs)
        if self._deja_rank not in ranks:
            return engine.as_library(split)
        place = self._deja_store, ranks.index(self._deja_rank), len(ranks)
        group = Recorded.__new__(type(self))
        Recorded.__init__(group, self._deja_backend, *place, self._deja_split_name(args, kwargs), split, self._deja_timeout)
        return self._deja_like_its_parent(group, args, kwargs)

    def _set_group_name(self, name):
        super()._set_group_name(name)
        if hasattr(self._deja_as_group, "_set_group_name"):
            self._deja_as_group._set_group_name(name)

    setGroupName = _set_group_name

    def _set_group_desc(self, description):
        super()._set_group_desc(description)
        if hasattr(self._deja_as_group, "_set_group_desc"):
            self._deja_as_group._set_group_desc(description)

    setGroupDesc = _set_group_desc

    def abort(self):
        self._deja_real.abort()

    def shutdown(self):
        self._deja_real.shutdown()

    def set_timeout(self, timeout):
        self._deja_real.set_timeout(timeout)

    _set_default_timeout = set_timeout


class Served(Group):
    """A group of a replay."""

    def __init__(self, backend, rank, size, name, timeout=None, store=None):
        super().__init__(rank, size, backend)
        self._deja_group = new_group(rank, size, name, None).group
        self._deja_store = store
        self._deja_set_values = {}  # of properties, by the program
        self.options = _Options(timeout)

    def check_collectives(self, _):
        """The ranks are to compare what they call. A replay has the outcomes."""

    def _deja_pass_on(self, name, args, kwargs):
        try:
            return torch_passing.served_call(self, name)
        except LookupError:
            raise RuntimeError(f"deja: the recording has no call of the process group's {name}") from None

    def _deja_ask(self, name):
        if name in self._deja_set_values:
            return self._deja_set_values[name]
        try:
            return torch_passing.served_call(self, name)
        except LookupError:
            return False if name.startswith("supports_") else None

    @property
    def _device_types(self):
        try:
            return torch_passing.served_call(self, "_device_types")
        except LookupError:
            return super()._device_types

    def _deja_set(self, name, value):
        self._deja_set_values[name] = value

    def get_group_store(self):
        return self._deja_store

    def split_group(self, ranks, *args, **kwargs):
        if self._deja_rank not in ranks:
            return None
        place = ranks.index(self._deja_rank), len(ranks)
        name = self._deja_split_name(args, kwargs)
        group = Served.__new__(type(self))
        Served.__init__(group, self._deja_backend, *place, name, self.options._timeout, self._deja_store)
        return self._deja_like_its_parent(group, args, kwargs)

    def __getattr__(self, name):
        if not name.startswith(("_deja_", "__")):
            try:
                torch_passing.served_call(self, f"has {name}")
                return torch_passing.method(name).__get__(self)
            except LookupError:
                pass
        what = f"a replay has no real group of the backend {self._deja_backend}, which alone would know"
        raise AttributeError(f"deja: {what} '{name}'" if not name.startswith("_") else name)

    def abort(self):
        pass

    def shutdown(self):
        pass

    def set_timeout(self, timeout):
        self.options._timeout = timeout

    _set_default_timeout = set_timeout


def as_group(made, backend, store, rank, size):
    """torch 2 has backends behind a ProcessGroup, which knows more operations than they do."""
    if isinstance(made, c10d.ProcessGroup):
        return made
    group = c10d.ProcessGroup(store, rank, size)
    kinds = c10d.ProcessGroup.BackendType
    kind = getattr(kinds, backend.upper(), kinds.CUSTOM)
    group._set_default_backend(kind)
    group._register_backend(torch.device("cpu"), kind, made)
    return group


def new_group(rank, size, name, make):
    made = _new_group(rank, size, name, make)
    newer = torch_versions.newer(torch)
    if newer:
        engine.not_recorded(f"what is new in torch.distributed: {newer}", may_be=True)
    return made


def _new_group(rank, size, name, make):
    return engine.group_call(
        "c10d_new_group",
        make,
        dtype=_BYTES,
        peer=rank,
        nranks=size,
        name=name,
        identity=identity_of([size], name),
        python_stack=python_stack.here(3),
    )


def name_of(store):
    """Of a group that meets in that store: the same in all its ranks, and no other group's."""
    return getattr(store, "_deja_prefix", b"").decode(errors="replace")


def recording(real, backend):
    """The class to use instead of `real` (ProcessGroupGloo, …)."""

    class RecordedGroup(Recorded):
        def __new__(cls, *args, **kwargs):
            # A plug-in's backend may have one of torch's inside.
            return real(*args, **kwargs) if engine.in_real_call() else super().__new__(cls)

        def __init__(self, store, rank, size, *args, **kwargs):
            def make():
                return real(store, rank, size, *args, **kwargs)

            super().__init__(backend, store, rank, size, name_of(store), make, kwargs.get("timeout"))

    return _like(RecordedGroup, real)


def serving(real, backend):
    """The class that stands for `real` in a replay."""

    class ServedGroup(Served):
        def __init__(self, store, rank, size, *args, **kwargs):
            super().__init__(backend, rank, size, name_of(store), kwargs.get("timeout"), store)

    return _like(ServedGroup, real)


class _Options:
    def __init__(self, timeout):
        self._timeout = timeout or _TIMEOUT
        self.backend = ""


def _like(made, real):
    """Named as the real class, with what programs ask of the class itself."""
    for name in ("create_device", "create_default_device", "Device", "Options", "_Options"):
        if hasattr(real, name):
            setattr(made, name, getattr(real, name))
    made.__name__, made.__qualname__, made.__module__ = real.__name__, real.__qualname__, real.__module__
    return made
