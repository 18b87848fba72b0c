"""How Deja's library finds out where the interpreter is when a signal ends the process.

By _Py_DumpTraceback, which is made for signal handlers. Python 3.9 and 3.13 do not let others call it; there the library walks
over the frames itself (preload/python_frames.h). Where they are is tried here, on this thread's own frames: if anything
is not as it should be, crashes have no frames of Python.
"""

import ctypes
import sys

# _PyRuntime begins with _Py_DebugOffsets (Include/internal/pycore_runtime.h), numbers of 64 bits for debuggers. Each minor
# version has its own order: which of them is which.
_COOKIE = b"xdebugpy"
_PUBLISHED = {
    (3, 13): {
        "current_frame": 23,
        "previous": 29,
        "executable": 30,
        "type": 45,
        "file": 35,
        "function": 37,
        "text_state": 68,
        "text_length": 69,
        "text_bytes": 70,
    }
}
# Before, the frames were objects, in the order of struct _ts, struct _frame, PyCodeObject and PyASCIIObject.
_OFFSETS_OF_39 = {
    "current_frame": 24,
    "previous": 24,
    "executable": 32,
    "type": 8,
    "file": 104,
    "function": 112,
    "text_state": 32,
    "text_length": 16,
    "text_bytes": 48,
    "more_of_text": 24,
}
_KNOWN = {(3, 9): _OFFSETS_OF_39, (3, 10): _OFFSETS_OF_39}
_MORE_OF_TEXT = 16  # in front of what is not ASCII, since 3.12


class PythonLayout(ctypes.Structure):
    """The one of preload/python_stack.h."""

    _fields_ = [
        ("current_frame", ctypes.c_uint64),
        ("previous", ctypes.c_uint64),
        ("executable", ctypes.c_uint64),
        ("type", ctypes.c_uint64),
        ("file", ctypes.c_uint64),
        ("function", ctypes.c_uint64),
        ("text_state", ctypes.c_uint64),
        ("text_length", ctypes.c_uint64),
        ("text_bytes", ctypes.c_uint64),
        ("more_of_text", ctypes.c_uint64),
        ("code_type", ctypes.c_void_p),
        ("line", ctypes.c_void_p),
    ]


def tell(by_dump, by_layout):
    """by_dump, by_layout: what the library has for the two ways; None: it has none."""
    state = getattr(ctypes.pythonapi, "PyGILState_GetThisThreadState", None)
    dump = getattr(ctypes.pythonapi, "_Py_DumpTraceback", None)
    if by_dump is None or state is None:
        return
    if dump is not None:
        by_dump(ctypes.cast(dump, ctypes.c_void_p), ctypes.cast(state, ctypes.c_void_p))
        return
    layout = _layout()
    if layout is not None and _is_right(layout, state):
        by_layout(ctypes.byref(layout), ctypes.cast(state, ctypes.c_void_p))


def _layout():
    """What should be the layout of this interpreter; None: nobody knows."""
    offsets = _KNOWN.get(sys.version_info[:2]) or _published()
    for name in ("PyUnstable_InterpreterFrame_GetLine", "PyFrame_GetLineNumber"):
        line = getattr(ctypes.pythonapi, name, None)
        if offsets is not None and line is not None:
            code_type, line = id(type(tell.__code__)), ctypes.cast(line, ctypes.c_void_p)
            return PythonLayout(**offsets, code_type=code_type, line=line)
    return None


def _published():
    places = _PUBLISHED.get(sys.version_info[:2])
    if places is None:
        return None
    published = (ctypes.c_uint64 * (max(places.values()) + 1)).in_dll(ctypes.pythonapi, "_PyRuntime")
    if bytes(published)[: len(_COOKIE)] != _COOKIE:
        return None
    return {"more_of_text": _MORE_OF_TEXT, **{field: published[place] for field, place in places.items()}}


def _at(address, offset):
    return ctypes.c_uint64.from_address(address + offset).value


def _is_right(layout, state):
    state.restype = ctypes.c_void_p
    # What reads is the innermost frame.
    frame, real = _at(_at(state(), layout.current_frame), layout.previous), sys._getframe()
    for _ in range(1000):
        if frame == 0 or real is None:
            break
        code = _at(frame, layout.executable)
        if code != 0 and _at(code, layout.type) == layout.code_type:
            if code != id(real.f_code) or not _has_its_texts(layout, real.f_code):
                return False
            real = real.f_back
        frame = _at(frame, layout.previous)
    return real is None


def _has_its_texts(layout, code):
    name = getattr(code, "co_qualname", code.co_name)
    if [_at(id(code), offset) for offset in (layout.file, layout.function)] != [id(code.co_filename), id(name)]:
        return False
    return all(_reads(layout, text) for text in (name, "\u00e9", "\u03bb", "\U0001f600"))


def _reads(layout, text):
    address, state = id(text), ctypes.c_uint32.from_address(id(text) + layout.text_state).value
    kind, is_compact, is_ascii = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
    start = address + layout.text_bytes + (0 if is_ascii else layout.more_of_text)
    codec = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}.get(kind)
    if not is_compact or is_ascii != text.isascii() or codec is None or _at(address, layout.text_length) != len(text):
        return False
    return ctypes.string_at(start, kind * len(text)).decode(codec) == text
