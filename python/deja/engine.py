"""The library that records or replays this process, by ctypes, and by functions that it makes where a call by ctypes
costs too much. The headers of preload/hooks/python/ say what the calls mean."""

import ctypes
import struct
import sys

from deja.interpreter import frames

OFF, RECORDING, REPLAYING = 0, 1, 2
UNKNOWN, DONE, FAILED, RAISED = 0, 1, 2, 3


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


_register_tensor = _entry(
    "deja_impl_register_tensor",
    *(ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_int, ctypes.c_int),
)
_register_callbacks = _entry(
    "deja_impl_register_callbacks", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
# What is over at once keeps Python's lock.
_quick = ctypes.PyDLL(None)
_builtins = _entry("deja_impl_python_builtins", *(ctypes.py_object,) * 2, result=ctypes.c_int, library=_quick)
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
    return OFF if ask is None or group_call is None else ask()


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


class Outcome:
    """How an operation of the recording ended, as it is served."""

    __slots__ = ("group", "operation", "state", "src", "error")

    def __init__(self, group, operation, state, src, error):
        self.group, self.operation, self.state, self.src, self.error = group, operation, state, src, error


def _packer(kind):
    """Fills a structure with one call; ctypes needs one a field, each several times as long."""
    codes = {ctypes.c_uint32: "I", ctypes.c_int32: "i", ctypes.c_double: "d"}
    packer = struct.Struct("@" + "".join(codes.get(field[1], "Q") for field in kind._fields_))
    assert packer.size == ctypes.sizeof(kind)
    return packer


_UPDATE = _packer(OptimizerUpdate)
_update_buffer = ctypes.create_string_buffer(_UPDATE.size)
_update_at = ctypes.addressof(_update_buffer)


def address_of(text):
    """Where the bytes object has its bytes."""
    return ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0


def new_group(real, rank, size, name, identity, dtype, stack):
    """Hands the making of a group over. Returns what real() made, None in a replay, and the group's number."""
    value, group, _, answer = group_call(
        "c10d_new_group", real, (), {}, b"", b"", 0, dtype, 0, rank, 0, stack, size, name, identity
    )
    if answer is not None:
        served(group, 0, answer)
    return value, group


def served(group, operation, answer):
    """The Outcome of an operation that was served. Raises what the recorded call raised."""
    outcome = Outcome(group, operation, *answer)
    if outcome.state == RAISED:
        raise recorded_error(outcome.error)
    return outcome


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


_found = {}
if _builtins is not None and not _builtins(_found, describe):
    print("deja: not recorded: what Python does; the interpreter exports no C API", file=sys.stderr)
# preload/hooks/python/builtins.h says what these are. None: there is none of Deja's libraries here.
group_call, operation, ending = map(_found.get, ("group_call", "operation", "ending"))
describe_tensors = _found.get("describe_tensors")
step, states, states_if = map(_found.get, ("step", "states", "states_if"))
has_bytes, value_byte = map(_found.get, ("has_bytes", "value_byte"))


def _make(call, arguments):
    return call(*arguments)


as_library = _found.get("as_library", _make)
