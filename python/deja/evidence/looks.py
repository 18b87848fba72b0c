"""Whether the program finds a file: what its own code asks os.path and pathlib, and the answers.

Two ranks that part because one of them sees a checkpoint and the other does not are told apart by it.
"""

import functools
import genericpath
import os
import pathlib
import posixpath
import sys

from deja.evidence import seen

_OF_PATHS = ("exists", "isfile", "isdir")
_OF_OBJECTS = ("exists", "is_file", "is_dir")
_LONGEST = 400
_MOST_ALIKE = 1000  # answers to one question that are all told; then one in as many, and each that is another one
_MOST_PATHS = 4096

_asked = {}  # by function and path: the last answer, and how often it was asked
_installed = False


def install():
    """Once, however often it is called."""
    global _installed
    if _installed or not seen.is_on():
        return
    _installed = True
    for name in _OF_PATHS:
        looked = _looked(getattr(os.path, name), name)
        for module in (os.path, posixpath, genericpath):
            if hasattr(module, name):
                setattr(module, name, looked)
    for name in _OF_OBJECTS:
        setattr(pathlib.Path, name, _looked(getattr(pathlib.Path, name), name))


def _looked(function, name):
    @functools.wraps(function)
    def looked(*args, **kwargs):
        answer = function(*args, **kwargs)
        if args and seen.is_of_program(sys._getframe(1).f_code.co_filename):
            _tell(name, args[0], answer)
        return answer

    return looked


@seen.safely
def _tell(name, path, answer):
    if not isinstance(path, (str, os.PathLike)):
        return
    path = str(path)
    question = name, path
    before, times = _asked.get(question, (None, 0))
    if len(_asked) >= _MOST_PATHS and not times:
        return
    _asked[question] = answer, times + 1
    if answer == before and times >= _MOST_ALIKE and times % _MOST_ALIKE:
        return
    seen.tell("looked", name=path[:_LONGEST], found=int(bool(answer)), at=seen.place(2))
