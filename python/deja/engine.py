"""The library that records or replays this process, by ctypes. preload/hooks/c10d_api.h says what the calls mean."""

import ctypes

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
    ]


_REAL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_library = ctypes.CDLL(None)


def mode():
    """What happens in this process: OFF, RECORDING or REPLAYING."""
    ask = getattr(_library, "deja_impl_mode", None)
    return OFF if ask is None else ask()


class library:
    """with library(): what this thread does is the work of torch's own libraries, not the program's."""

    def __enter__(self):
        _library.deja_impl_library(1)

    def __exit__(self, *_):
        _library.deja_impl_library(0)


def step(number):
    """Step `number` of the training loop begins."""
    _library.deja_impl_step(ctypes.c_uint64(number))


def note(text):
    """A line for listings."""
    _library.deja_impl_note(text.encode(errors="replace"))


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


def pieces(tensors):
    """What `inputs` and `outputs` are: (array, count)."""
    array = (Piece * len(tensors))()
    for piece, tensor in zip(array, tensors):
        piece.data = tensor.data_ptr()
        piece.bytes = tensor.numel() * tensor.element_size()
    return array, len(array)


class Outcome:
    """What came of a call: its number, and, where it was served, how the recorded one ended."""

    __slots__ = ("served", "value", "operation", "group", "state", "src", "error")


def group_call(function, real, inputs=((), 0), outputs=((), 0), **fields):
    """Hands an operation over. real() makes it; what that raises is raised here."""
    call = _structure(GroupCall, function=function.encode(), **fields)
    if inputs[1]:
        call.inputs, call.input_count = inputs
    if outputs[1]:
        call.outputs, call.output_count = outputs
    outcome = Outcome()
    outcome.value = raised = None

    def invoke(_):
        nonlocal raised, text
        try:
            outcome.value = real()
        except BaseException as error:  # comes out again below
            raised = error
            text = describe(error)
            call.error = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p)
            call.error_size = len(text)

    text = None
    outcome.served = _library.deja_impl_group_call(ctypes.byref(call), _REAL(invoke), None) != 0
    if raised is not None:
        raise raised
    outcome.operation = call.operation
    outcome.group = call.group
    outcome.state = call.state
    outcome.src = call.src
    outcome.error = ctypes.string_at(call.error, call.error_size) if call.error and outcome.served else None
    if outcome.served and outcome.state == RAISED:
        raise recorded_error(outcome.error)
    return outcome


def group_done(group, operation, dtype=255, outputs=((), 0), src=-1, error=None):
    """Says how an operation ended. In a replay: waits for one that never did in the recording, and does not return."""
    done = _structure(GroupDone, group=group, operation=operation, dtype=dtype, src=src)
    if outputs[1]:
        done.outputs, done.output_count = outputs
    if error is not None:
        text = describe(error)
        done.error, done.error_size = text, len(text)
    _library.deja_impl_group_done(ctypes.byref(done))


def store_call(function, key, real):
    """Hands a call of a store over. real() returns bytes. None: the recording has no such call."""
    call = _structure(StoreCall, function=function.encode(), key=key, key_size=len(key))
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
