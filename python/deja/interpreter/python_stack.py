"""Where the program is: its stack of Python's frames, as a number that stands for it in the trace.

The same path has the same number, so that what it costs is a walk over the frames.
"""

import sys

from deja import engine
from deja.interpreter import frames

_MAX_FRAMES = 40  # preload/stack/python_stack.h
_MAX_KEY = 2 * (_MAX_FRAMES + 4)  # some frames are Deja's
_MAX_STACKS = 8192

IS_FOUND = frames.are_walked()  # by the library, for who says 0

_stacks = {}  # by code objects and places in them: the number, and the objects, so that they stay what they are
_functions = {}  # by code object's id: (its number, the object)


def here(depth):
    """The number of the stack from the caller's `depth`-th caller outwards. 0: the library finds it."""
    if IS_FOUND:
        return 0
    frame = first = sys._getframe(depth + 1)
    key = []
    while frame is not None and len(key) < _MAX_KEY:
        key.append(id(frame.f_code))
        key.append(frame.f_lasti)
        frame = frame.f_back
    key = tuple(key)
    known = _stacks.get(key)
    if known is None:
        found = _frames_from(first)
        known = _number_of(found), [frame.f_code for frame in found]
        if len(_stacks) < _MAX_STACKS:
            _stacks[key] = known
    return known[0]


def _frames_from(frame):
    found = []
    while frame is not None and 2 * len(found) < _MAX_KEY:
        found.append(frame)
        frame = frame.f_back
    return found


def _number_of(found):
    functions, lines = [], []
    for frame in found:
        if not frames.is_own(frame.f_code):
            functions.append(_function(frame.f_code))
            lines.append(frame.f_lineno or 0)
    return engine.python_stack(functions[:_MAX_FRAMES], lines[:_MAX_FRAMES])


def _function(code):
    known = _functions.get(id(code))
    if known is None:
        name = getattr(code, "co_qualname", code.co_name)
        known = _functions[id(code)] = engine.python_function(name, code.co_filename), code
    return known[0]
