"""How Deja's library finds out where the interpreter is: at calls of NCCL and MPI, and when a signal ends the process.

It walks over the frames itself (preload/stack/python_frames.h), without the interpreter's lock. Where they are is
tried here, on this thread's own frames. If anything is not as it should be, such calls have no frames of Python. The
end of a process then has those of _Py_DumpTraceback, which is made for signal handlers and not open to others in each
version.
"""

import ctypes
import os
import sys

# Since 3.13 _PyRuntime begins with _Py_DebugOffsets (Include/internal/pycore_runtime.h), numbers of 64 bits for
# debuggers. Each minor version has its own order: which of them is which.
_COOKIE = b"xdebugpy"
_PUBLISHED = {
    (3, 13): {
        "current_frame": 23,
        "previous": 29,
        "executable": 30,
        "place": 31,
        "text_state": 68,
        "text_length": 69,
        "text_bytes": 70,
    }
}
# Before, as struct _ts, struct _frame or _PyInterpreterFrame, and PyASCIIObject have it.
_TEXT = {"text_state": 32, "text_length": 16, "text_bytes": 48, "more_of_text": 24}
_KNOWN = {
    (3, 9): {"current_frame": 24, "previous": 24, "executable": 32, "place": 104, **_TEXT},
    (3, 10): {"current_frame": 24, "previous": 24, "executable": 32, "place": 96, **_TEXT},
    (3, 11): {"through": 56, "current_frame": 8, "previous": 48, "executable": 32, "place": 56, **_TEXT},
}
_MORE_OF_TEXT = 16  # in front of what is not ASCII, since 3.12
_TYPE = 8  # of an object
_GETPID = {"x86_64": 39, "aarch64": 172}  # system calls
_WORD = 8


class PythonLayout(ctypes.Structure):
    """The one of preload/stack/python_stack.h."""

    _fields_ = [
        ("through", ctypes.c_uint64),
        ("current_frame", ctypes.c_uint64),
        ("previous", ctypes.c_uint64),
        ("executable", ctypes.c_uint64),
        ("place", ctypes.c_uint64),
        ("type", ctypes.c_uint64),
        ("file", ctypes.c_uint64),
        ("function", ctypes.c_uint64),
        ("instructions", ctypes.c_uint64),
        ("text_state", ctypes.c_uint64),
        ("text_length", ctypes.c_uint64),
        ("text_bytes", ctypes.c_uint64),
        ("more_of_text", ctypes.c_uint64),
        ("code_type", ctypes.c_void_p),
        ("line_of_code", ctypes.c_void_p),
        ("line_of_frame", ctypes.c_void_p),
        ("is_alive", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("own_folder", ctypes.c_char_p),
    ]


_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_walked = False
_kept = []  # a layout, whose text the library reads


def are_walked():
    """Whether Deja's library finds the frames of a thread by itself."""
    return _is_walked


def is_own(code):
    """Whether it is code of Deja's."""
    return code.co_filename.startswith(_OWN_FOLDER)


def tell(by_dump, by_layout):
    """by_dump, by_layout: what the library has for the two ways; None: it has none."""
    global _is_walked
    state = getattr(ctypes.pythonapi, "PyGILState_GetThisThreadState", None)
    dump = getattr(ctypes.pythonapi, "_Py_DumpTraceback", None)
    if by_dump is None or state is None:
        return
    layout = _layout(state)
    if layout is not None and _Tried(layout).is_right():
        layout.own_folder = os.fsencode(_OWN_FOLDER)  # ctypes keeps it with the structure
        _kept.append(layout)
        by_layout(ctypes.byref(layout))
        _is_walked = True
    elif dump is not None:
        by_dump(ctypes.cast(dump, ctypes.c_void_p), ctypes.cast(state, ctypes.c_void_p))


def _layout(state):
    """What should be the layout of this interpreter; None: not known."""
    offsets = _KNOWN.get(sys.version_info[:2]) or _published()
    code = _Tried.is_right.__code__  # whose name and qualified name are two
    name = getattr(code, "co_qualname", code.co_name)
    places = [_word_of(code, id(text)) for text in (code.co_filename, name)]
    if offsets is None or None in places:
        return None
    # From 3.11 on the instructions are the end of a code object.
    line = "PyCode_Addr2Line" if sys.version_info >= (3, 11) else "PyFrame_GetLineNumber"
    functions = [getattr(ctypes.pythonapi, name, None) for name in (line, "Py_IsInitialized")]
    if None in functions:
        return None
    line, is_alive, state = (ctypes.cast(function, ctypes.c_void_p) for function in (*functions, state))
    layout = PythonLayout(**offsets, type=_TYPE, file=places[0], function=places[1], is_alive=is_alive, state=state)
    layout.code_type = id(type(code))
    layout.instructions = type(code).__basicsize__
    if sys.version_info >= (3, 11):
        layout.line_of_code = line
    else:
        layout.line_of_frame = line
    return layout


def _published():
    places = _PUBLISHED.get(sys.version_info[:2])
    if places is None:
        return None
    published = (ctypes.c_uint64 * (max(places.values()) + 1)).in_dll(ctypes.pythonapi, "_PyRuntime")
    if bytes(published)[: len(_COOKIE)] != _COOKIE:
        return None
    return {"more_of_text": _MORE_OF_TEXT, **{field: published[place] for field, place in places.items()}}


def _word_of(thing, value):
    """Where an object has that word, in bytes; None: nowhere."""
    words = (ctypes.c_uint64 * (type(thing).__basicsize__ // _WORD)).from_address(id(thing))
    return next((_WORD * i for i, word in enumerate(words) if word == value), None)


class _Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _Tried:
    """A layout that is tried without trusting it: by a system call, which fails where there is no memory."""

    def __init__(self, layout):
        self._layout = layout
        self._read = ctypes.CDLL(None).process_vm_readv
        ulong = ctypes.c_ulong
        self._read.argtypes = [ctypes.c_int, ctypes.POINTER(_Piece), ulong, ctypes.POINTER(_Piece), ulong, ulong]
        self._read.restype = ctypes.c_ssize_t
        # In a replay os.getpid() is the recorded number.
        self._pid = ctypes.CDLL(None).syscall(_GETPID.get(os.uname().machine, -1))

    def is_right(self):
        try:
            return self._frames_are_right() and all(
                self._reads(text) for text in ("train", "\u00e9", "\u03bb", "\U0001f600")
            )
        except OSError:
            return False

    def _bytes(self, address, count):
        found = ctypes.create_string_buffer(count)
        here, there = _Piece(ctypes.addressof(found), count), _Piece(address, count)
        if self._read(self._pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != count:
            raise OSError(f"nothing to read at {address:#x}")
        return found.raw

    def _word(self, address):
        return int.from_bytes(self._bytes(address, _WORD), "little")

    def _frames_are_right(self):
        layout, real = self._layout, sys._getframe()
        frame = ctypes.CFUNCTYPE(ctypes.c_void_p)(layout.state)()
        found = ctypes.c_uint64()
        here, there = _Piece(ctypes.addressof(found), _WORD), _Piece(0, _WORD)
        # In this function and no other: the innermost frame is that of who reads, and gone when that is over.
        for offset in ([layout.through] if layout.through else []) + [layout.current_frame]:
            there.base = frame + offset
            if self._read(self._pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != _WORD:
                return False
            frame = found.value
        for _ in range(1000):
            if frame == 0 or real is None:
                break
            code = self._word(frame + layout.executable)
            if code != 0 and self._word(code + layout.type) == layout.code_type:
                if not self._is(frame, code, real):
                    return False
                real = real.f_back
            frame = self._word(frame + layout.previous)
        return real is None

    def _is(self, frame, code, real):
        layout, known = self._layout, real.f_code
        name = getattr(known, "co_qualname", known.co_name)
        if code != id(known) or self._word(code + layout.file) != id(known.co_filename):
            return False
        if self._word(code + layout.function) != id(name):
            return False
        # This function's own line is another one by now.
        return known is sys._getframe(1).f_code or self._line(frame, code) == real.f_lineno

    def _line(self, frame, code):
        layout = self._layout
        if not layout.line_of_code:
            return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(layout.line_of_frame)(frame)
        instruction = self._word(frame + layout.place) - (code + layout.instructions)
        return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(layout.line_of_code)(code, instruction)

    def _reads(self, text):
        layout, address = self._layout, id(text)
        state = self._word(address + layout.text_state)
        kind, is_compact, is_ascii = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
        start = address + layout.text_bytes + (0 if is_ascii else layout.more_of_text)
        codec = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}.get(kind)
        if not is_compact or is_ascii != text.isascii() or codec is None:
            return False
        if self._word(address + layout.text_length) != len(text):
            return False
        return self._bytes(start, kind * len(text)).decode(codec) == text
