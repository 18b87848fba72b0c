"""The library that records or replays this process, by ctypes. preload/hooks/python/c10d_api.h says what the calls
mean."""

import array
import ctypes
import struct
import sys

from deja.interpreter import frames

OFF, RECORDING, REPLAYING = 0, 1, 2
UNKNOWN, DONE, FAILED, RAISED = 0, 1, 2, 3


class Piece(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


class GroupCall(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("dtype", ctypes.c_int32),
        ("function", ctypes.c_char_p),
        ("group", ctypes.c_uint64),
        ("inputs", ctypes.POINTER(Piece)),
        ("input_count", ctypes.c_uint64),
        ("outputs", ctypes.POINTER(Piece)),
        ("output_count", ctypes.c_uint64),
        ("op", ctypes.c_int32),
        ("peer", ctypes.c_int32),
        ("tag", ctypes.c_int32),
        ("nranks", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("identity", ctypes.c_uint64),
        ("operation", ctypes.c_uint64),
        ("state", ctypes.c_int32),
        ("src", ctypes.c_int32),
        ("error", ctypes.c_void_p),
        ("error_size", ctypes.c_uint64),
        ("python_stack", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
    ]


class GroupDone(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("dtype", ctypes.c_int32),
        ("group", ctypes.c_uint64),
        ("operation", ctypes.c_uint64),
        ("outputs", ctypes.POINTER(Piece)),
        ("output_count", ctypes.c_uint64),
        ("src", ctypes.c_int32),
        ("unused", ctypes.c_int32),
        ("error", ctypes.c_char_p),
        ("error_size", ctypes.c_uint64),
    ]


class StoreCall(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("failed", ctypes.c_int32),
        ("function", ctypes.c_char_p),
        ("key", ctypes.c_char_p),
        ("key_size", ctypes.c_uint64),
        ("value", ctypes.c_void_p),
        ("value_size", ctypes.c_uint64),
        ("of_rank", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
    ]


class OptimizerUpdate(ctypes.Structure):
    """deja_update_t of include/deja.h."""

    _fields_ = [
        ("optimizer", ctypes.c_uint32),
        ("dtype", ctypes.c_uint32),
        ("count", ctypes.c_uint64),
        ("parameters", ctypes.c_void_p),
        ("first_moment", ctypes.c_void_p),
        ("second_moment", ctypes.c_void_p),
        ("gradient", ctypes.c_void_p),
        ("updates", ctypes.c_uint64),
        ("learning_rate", ctypes.c_double),
        ("beta1", ctypes.c_double),
        ("beta2", ctypes.c_double),
        ("epsilon", ctypes.c_double),
        ("weight_decay", ctypes.c_double),
        ("gradient_scale", ctypes.c_double),
        ("nesterov", ctypes.c_int32),
        ("padding", ctypes.c_uint32),
    ]


_REAL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_library = ctypes.CDLL(None)


def _entry(name, *arguments, result=None, library=_library):
    """An entry point of Deja's library; None where there is none."""
    function = getattr(library, name, None)
    if function is not None:
        function.argtypes, function.restype = arguments, result
    return function


# Called for every operation: addresses go as numbers, what is over at once keeps Python's lock.
_group_call = _entry("deja_impl_group_call", ctypes.c_void_p, _REAL, ctypes.c_void_p, result=ctypes.c_int)
_group_done = _entry("deja_impl_group_done", ctypes.c_void_p)
_step = _entry("deja_impl_step", ctypes.c_uint64, result=ctypes.c_uint64)
_register_tensor = _entry(
    "deja_impl_register_tensor",
    *(ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_int, ctypes.c_int),
)
_register_callbacks = _entry(
    "deja_impl_register_callbacks", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
_quick = ctypes.PyDLL(None)
_state = _entry("deja_impl_state", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, library=_quick)
_set_library = _entry("deja_impl_library", ctypes.c_int, library=_quick)
_in_real_call = _entry("deja_impl_in_real_call", result=ctypes.c_int, library=_quick)
_update = _entry("deja_impl_update", ctypes.c_void_p, library=_quick)
digest_entry = _entry("deja_impl_digest", ctypes.c_void_p, ctypes.c_size_t, result=ctypes.c_uint64, library=_quick)
_python_at = _entry("deja_impl_python_at", ctypes.c_uint32, result=ctypes.c_uint32, library=_quick)
_threads_meet = _entry("deja_impl_threads_meet", library=_quick)
_orders_loops = _entry("deja_impl_orders_loops", result=ctypes.c_int, library=_quick)
_collection = _entry("deja_impl_collection", *(ctypes.c_int,) * 3, library=_quick)
collection_looks = _entry("deja_impl_collection_looks", *(ctypes.py_object,) * 2, library=_quick)
_keep_collections = _entry("deja_impl_keep_collections", ctypes.c_void_p, result=ctypes.c_int, library=_quick)
_in_any_order = _entry("deja_impl_in_any_order", ctypes.c_int, result=ctypes.c_int, library=_quick)
_python_function = _entry(
    "deja_impl_python_function", ctypes.c_char_p, ctypes.c_char_p, result=ctypes.c_uint32, library=_quick
)
_watch_exceptions = _entry(
    "deja_impl_watch_exceptions",
    *(ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64, ctypes.py_object),
    library=_quick,
)
_exceptions_end = _entry("deja_impl_exceptions_end", library=_quick)
_python_stack = _entry(
    "deja_impl_python_stack",
    *(ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint64),
    result=ctypes.c_uint32,
    library=_quick,
)


def mode():
    """What happens in this process: OFF, RECORDING or REPLAYING."""
    ask = getattr(_library, "deja_impl_mode", None)
    return OFF if ask is None else ask()


def variable(name):
    """The value of one of Deja's own variables, which the program's environment does not show."""
    ask = ctypes.CDLL(None).getenv
    ask.restype = ctypes.c_char_p
    value = as_library(ask, (name.encode(),))
    return None if value is None else value.decode(errors="replace")


frames.tell(
    _entry("deja_impl_interpreter", ctypes.c_void_p, ctypes.c_void_p),
    _entry("deja_impl_interpreter_layout", ctypes.c_void_p),
)


def python_function(name, file):
    """The number of a function of Python's."""
    return _python_function(*(text.encode(errors="replace") for text in (name, file)))


def python_stack(functions, lines):
    """The number of a stack, innermost frame first."""
    array_of = ctypes.c_uint32 * len(functions)
    return _python_stack(array_of(*functions), array_of(*lines), len(functions))


def in_real_call():
    """Whether this thread is inside `real` of an operation, so that what it does is that operation's."""
    return _in_real_call() != 0


def threads_meet():
    """Before the first thread of a server: the order in which its threads take locks counts."""
    if _threads_meet is not None:
        _threads_meet()


def orders_loops():
    """Whether asyncio's loops find the ends of commands in an order that is recorded, or given back."""
    return _orders_loops is not None and _orders_loops() != 0


def sees_collections():
    """Whether the library is one that wants to hear of them."""
    return None not in (_collection, collection_looks, _keep_collections)


def collection(generation, ended, has_threads):
    """The interpreter's collector begins on this thread, or has ended there."""
    _collection(generation, ended, has_threads)


collector = ctypes.CFUNCTYPE(None, ctypes.c_int)


def keep_collections(collect):
    """collect: a `collector`, which a replay calls with the generation where the recorded one ran; None: no more.
    Returns whether the interpreter's own should not run by itself."""
    return _keep_collections(None if collect is None else ctypes.cast(collect, ctypes.c_void_p)) != 0


class any_order:
    """with any_order(): what this thread does with pipes and locks needs no order; none is recorded."""

    def __enter__(self):
        self._before = 0 if _in_any_order is None else _in_any_order(1)

    def __exit__(self, *_):
        if _in_any_order is not None:
            _in_any_order(self._before)


class library:
    """with library(): what this thread does is the work of torch's own libraries, not the program's."""

    def __enter__(self):
        _set_library(1)

    def __exit__(self, *_):
        _set_library(0)


def as_library(call, arguments=()):
    """What call(*arguments) returns, made as with library(): in less time."""
    _set_library(1)
    try:
        return call(*arguments)
    finally:
        _set_library(0)


def step(number):
    """Step `number` of the training loop begins. Returns the step to go on with."""
    return _step(number)


def checkpoint():
    """The next step takes a checkpoint."""
    _library.deja_impl_checkpoint()


def register_tensor(name, address, shape, dtype):
    """A dense tensor in host memory is part of each checkpoint."""
    _register_tensor(name.encode(), address, (ctypes.c_int64 * len(shape))(*shape), len(shape), dtype)


def register_callbacks(name, save, load):
    """deja_save_t and deja_load_t, which the caller keeps."""
    _register_callbacks(name.encode(), *(ctypes.cast(function, ctypes.c_void_p) for function in (save, load)), None)


def unregister(name):
    _library.deja_impl_unregister(name.encode())


def state(name, address, size):
    """A snapshot of opaque state. name: bytes."""
    _state(name, address, size)


def update(*values):
    """An update of an optimizer's: the fields of OptimizerUpdate but for the last one. If two threads meet here one
    says what the other one does: it need not be true."""
    _UPDATE.pack_into(_update_buffer, 0, *values, 0)
    _update(_update_at)


def python_at(stack):
    """From now on the thread is at that stack of Python's. Returns the one before."""
    return _python_at(stack)


def note(text):
    """A line for listings."""
    _library.deja_impl_note(text.encode(errors="replace"))


def watch_exceptions(layout, types, tell):
    """tell(traceback, type, args) as exceptions die: preload/hooks/python/exception_api.h. types: their addresses.
    False: there is no such entry point."""
    if _watch_exceptions is None or _exceptions_end is None:
        return False
    _watch_exceptions(ctypes.byref(layout), (ctypes.c_uint64 * len(types))(*types), len(types), tell)
    return True


def exceptions_end():
    """The interpreter ends: no more exceptions are reported."""
    _exceptions_end()


def not_recorded(what, may_be=False):
    """The program does something that is not recorded. Said here, in the trace and by `deja record`. A replay ends
    there.

    may_be: there may be such a thing; a replay goes on.
    """
    if what not in _said and not may_be and mode() == RECORDING:
        print(f"deja: not recorded: {what}", file=sys.stderr, flush=True)
    _said.add(what)
    _library.deja_impl_not_recorded(what.encode(errors="replace"), int(may_be))


_said = set()
_steps_are_named = False


def name_steps():
    """From now on the program says itself where its steps begin."""
    global _steps_are_named
    _steps_are_named = True


def steps_are_named():
    return _steps_are_named


def _structure(kind, **fields):
    made = kind(size=ctypes.sizeof(kind))
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class Pieces:
    """What `inputs` and `outputs` of an operation are: an array of Piece."""

    __slots__ = ("_words", "address", "count")

    def __init__(self, words):
        """words: the address of each tensor and how many bytes it has."""
        self._words = array.array("Q", words)
        self.address, self.count = self._words.buffer_info()[0], len(words) // 2

    def runs(self):
        """(address, bytes) of each."""
        return list(zip(self._words[::2], self._words[1::2]))


NO_PIECES = Pieces(())


class Outcome:
    """What came of a call: its number, and, where it was served, how the recorded one ended."""

    __slots__ = ("served", "value", "operation", "group", "state", "src", "error")


def _packer(kind):
    """Fills a structure with one call; ctypes needs one a field, each several times as long."""
    codes = {ctypes.c_uint32: "I", ctypes.c_int32: "i", ctypes.c_double: "d"}
    packer = struct.Struct("@" + "".join(codes.get(field[1], "Q") for field in kind._fields_))
    assert packer.size == ctypes.sizeof(kind)
    return packer


_CALL, _DONE = _packer(GroupCall), _packer(GroupDone)
_CALL_SIZE, _DONE_SIZE = _CALL.size, _DONE.size
_HANDED_OUT, _HANDED_OUT_AT = struct.Struct("@QiiQQ"), GroupCall.operation.offset  # operation to error_size
_GROUP, _GROUP_AT = struct.Struct("@Q"), GroupCall.group.offset
_UPDATE = _packer(OptimizerUpdate)
_update_buffer = ctypes.create_string_buffer(_UPDATE.size)
_update_at = ctypes.addressof(_update_buffer)
_free_buffers = []  # of structures that no call uses
_under_way = {}  # by the address of its structure: [real, value, raised, text of that]


def _buffer():
    """Memory for one structure, and its address."""
    try:
        return _free_buffers.pop()
    except IndexError:
        buffer = ctypes.create_string_buffer(max(_CALL_SIZE, _DONE_SIZE))
        return buffer, ctypes.addressof(buffer)


def address_of(text):
    """Where the bytes object has its bytes."""
    return ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0


_addresses = {}  # of names that live as long as the process


def _address_of_name(name):
    known = _addresses.get(name)
    if known is None:
        text = name.encode()
        known = _addresses[name] = (address_of(text), text)
    return known[0]


@_REAL
def _make_real_call(address):
    call = _under_way[address]
    try:
        call[1] = call[0]()
    except BaseException as error:  # comes out again in group_call
        call[2] = error
        text = call[3] = describe(error)
        made = GroupCall.from_address(address)
        made.error, made.error_size = address_of(text), len(text)


def group_call(
    function,
    real,
    inputs=NO_PIECES,
    outputs=NO_PIECES,
    group=0,
    dtype=255,
    op=0,
    peer=0,
    tag=0,
    nranks=0,
    name=None,
    identity=0,
    python_stack=0,
):
    """Hands an operation over. real() makes it; what that raises is raised here."""
    # C++ calls this from a training loop with its caches full of tensors. The amount of Python's code and data counts,
    # hence the long lines.
    held = _buffer()
    buffer, address = held
    where, text = _address_of_name(function), _address_of_name(name) if name else 0
    ins, in_count, outs, out_count = inputs.address, inputs.count, outputs.address, outputs.count
    # fmt: off
    _CALL.pack_into(buffer, 0, _CALL_SIZE, dtype, where, group, ins, in_count, outs, out_count, op, peer, tag, nranks,
                    text, identity, 0, 0, -1, 0, 0, python_stack, 0)
    # fmt: on
    _under_way[address] = call = [real, None, None, None]
    served = _group_call(address, _make_real_call, address) != 0
    del _under_way[address]
    if call[2] is not None:
        _free_buffers.append(held)
        raise call[2]
    outcome = Outcome()
    outcome.served, outcome.value, outcome.error = served, call[1], None
    outcome.operation, outcome.state, outcome.src, error, size = _HANDED_OUT.unpack_from(buffer, _HANDED_OUT_AT)
    outcome.group = group or _GROUP.unpack_from(buffer, _GROUP_AT)[0]
    _free_buffers.append(held)
    if served:
        if error:
            outcome.error = ctypes.string_at(error, size)
        if outcome.state == RAISED:
            raise recorded_error(outcome.error)
    return outcome


def group_done(group, operation, dtype=255, outputs=NO_PIECES, src=-1, error=None):
    """Says how an operation ended. In a replay: waits for one that never did in the recording, and does not return."""
    held = _buffer()
    text, size = None, 0
    if error is not None:
        text = describe(error)
        size = len(text)
    where = address_of(text) if text is not None else 0
    outs, out_count = outputs.address, outputs.count
    _DONE.pack_into(held[0], 0, _DONE_SIZE, dtype, group, operation, outs, out_count, src, 0, where, size)
    _group_done(held[1])
    _free_buffers.append(held)


def store_call(function, key, real, of_rank=False):
    """Hands a call of a store over. real() returns bytes. None: the recording has no such call.

    of_rank: init_process_group makes the store, so this process is to be a rank."""
    call = _structure(StoreCall, function=function.encode(), key=key, key_size=len(key), of_rank=int(of_rank))
    raised = value = None

    def invoke(_):
        nonlocal raised, value
        try:
            value = real()
        except BaseException as error:  # comes out again below
            raised = error
            value = describe(error)
            call.failed = 1
        call.value = ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p)
        call.value_size = len(value)

    answer = _library.deja_impl_store(ctypes.byref(call), _REAL(invoke), None)
    if raised is not None:
        raise raised
    if answer == 0:
        return value
    if answer < 0:
        return None
    value = ctypes.string_at(call.value, call.value_size) if call.value_size else b""
    if call.failed:
        raise recorded_error(value)
    return value


def describe(error):
    """An exception as it stands in a trace: its class and its text."""
    return f"{type(error).__module__}.{type(error).__qualname__}: {error}".encode()


def recorded_error(text):
    """The exception that describe() was given, as far as its class is one that torch.distributed raises."""
    import torch

    name, _, message = text.decode(errors="replace").partition(": ")
    module, _, name = name.rpartition(".")
    known = {"builtins": __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)}
    known["torch.distributed"] = known["torch._C"] = vars(torch.distributed)
    kind = known.get(module, {}).get(name)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = RuntimeError
    return kind(message)
