"""Exceptions that the program caught: what was raised, where, and where it was caught.

A rank that goes on with the next batch after an error leaves out a collective. An exception object that dies with a
traceback was caught, so the deaths of exceptions are watched (preload/hooks/python/exception_api.h). CPython tells
nothing else of them before 3.12 that costs nothing in programs without exceptions.
"""

import atexit
import builtins
import ctypes
import os
import sys

from deja import engine
from deja.evidence import seen
from deja.interpreter import handlers

_TESTED = ((3, 9), (3, 13))
_WORD = 8
# Places in a type, in words: sizes of an instance and of an item, and two functions (Include/cpython/object.h).
_BASICSIZE, _ITEMSIZE, _DEALLOC, _CLEAR = 4, 5, 6, 24
_ON_THE_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE
# Generators that are closed, and loops over asynchronous ones, end by these. Out of memory nothing is noted.
_LEFT_OUT = (GeneratorExit, MemoryError, StopAsyncIteration)
_FUNCTIONS = (
    *("PyErr_Fetch", "PyErr_Restore", "PyObject_CallFunctionObjArgs", "PyObject_IsTrue", "Py_IncRef", "Py_DecRef"),
    *("PyFrame_GetCode", "Py_AddPendingCall", "PyInterpreterState_Get"),
)
_LONGEST = 200
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_installed = False


class _Layout(ctypes.Structure):
    """deja_exception_layout of exception_api.h."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("type", "base", "dealloc", "clear", "args", "traceback", "next", "frame")),
        ("RecursionError", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
    ]


def install():
    """Once, however often it is called."""
    global _installed
    if _installed or not seen.is_on():
        return
    _installed = True
    layout = _layout()
    if layout is not None and engine.watch_exceptions(layout, _types(), _tell):
        atexit.register(engine.exceptions_end)


def _types():
    kinds = {kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)}
    # ExceptionGroup is on the heap. Its deallocator calls that of BaseExceptionGroup.
    return sorted(id(kind) for kind in kinds.difference(_LEFT_OUT) if not kind.__flags__ & _ON_THE_HEAP)


def _layout():
    """Where this interpreter has what; None: not known, or deallocators may run at the same time."""
    first, last = _TESTED
    if sys.implementation.name != "cpython" or not first <= sys.version_info[:2] <= last:
        return None
    if hasattr(sys, "gettotalrefcount") or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    try:
        raise ValueError("layout")
    except ValueError as error:
        raised, inner = error, error.__traceback__
    outer = type(inner)(inner, inner.tb_frame, inner.tb_lasti, inner.tb_lineno)
    functions = {name: getattr(ctypes.pythonapi, name, None) for name in _FUNCTIONS}
    places = {
        "type": _where(raised, type(raised)),
        "base": _where(OSError, Exception, size=64),
        "args": _where(raised, raised.args),
        "traceback": _where(raised, inner),
        "next": _where(outer, inner),
        "frame": _where(outer, inner.tb_frame),
        "dealloc": _where_types_have(_DEALLOC),
        "clear": _where_types_have(_CLEAR),
    }
    inner = outer = raised = None
    if None in places.values() or None in functions.values():
        return None
    made = _Layout(**places, RecursionError=id(RecursionError))
    for name, function in functions.items():
        setattr(made, name, ctypes.cast(function, ctypes.c_void_p))
    return made


def _words(thing, size):
    return (ctypes.c_uint64 * size).from_address(id(thing))


def _where(thing, value, size=None):
    """Where an object has that word, in bytes; None: nowhere, or at several places."""
    words = _words(thing, size or type(thing).__basicsize__ // _WORD)
    found = [_WORD * i for i, word in enumerate(words) if word == id(value)]
    return found[0] if len(found) == 1 else None


def _where_types_have(function):
    """Its place in bytes; None: types are not as expected."""
    of_os_error, of_value_error, of_key_error = (_words(kind, _CLEAR + 1) for kind in (OSError, ValueError, KeyError))
    for kind, words in ((OSError, of_os_error), (ValueError, of_value_error)):
        if (words[_BASICSIZE], words[_ITEMSIZE]) != (kind.__basicsize__, kind.__itemsize__):
            return None
    is_there = 0 != of_value_error[function] == of_key_error[function] != of_os_error[function] != 0
    return _WORD * function if is_there else None


def _tell(traceback, kind, args):
    """Called as an exception dies. True: never again of these two functions. Raises only what is the program's."""
    try:
        return _tell_of(traceback, kind, args)
    except RecursionError:  # there is no room for a call
        return False
    except BaseException as error:
        if handlers.have_raised(error):
            raise
        return True


def _tell_of(traceback, kind, args):
    catcher = traceback.tb_frame
    codes = []
    last = traceback
    while last is not None:
        codes.append((last.tb_frame.f_code, last.tb_lineno))
        last = last.tb_next
    own = [(code, line) for code, line in reversed(codes) if seen.is_of_program(code.co_filename)]
    if not own or catcher.f_code.co_filename.startswith(_HERE):
        return True
    by_program = codes[0][0] is own[-1][0]
    # A function whose last instruction raised has caught nothing: hasattr() or a loop has, in C.
    if catcher.f_lasti == traceback.tb_lasti or (kind is StopIteration and not by_program):
        return False
    seen.tell(
        "caught",
        error=kind.__name__,
        text=_text(args),
        raised=_places(own if by_program else own[:1]),
        caught=_places([(catcher.f_code, catcher.f_lineno or traceback.tb_lineno)]),  # except* ends without a line
    )
    return False


def _text(args):
    """No code of the program's runs: its exception is half gone."""
    parts = [str(one) for one in args if type(one) in (str, int, float, bool)]
    return ", ".join(parts)[:_LONGEST]


def _places(frames):
    return "|".join(
        f"{os.path.basename(code.co_filename)}:{line}:{getattr(code, 'co_qualname', code.co_name)}" for code, line in frames[:4]
    )
