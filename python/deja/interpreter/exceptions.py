"""An exception that ends a rank stands in its trace as a note: what it was, and where."""

import os
import sys

from deja.interpreter import handlers

_MAX_FRAMES = 20
_MOST_HEAD, _MOST_END = 200, 200  # characters of a long text: what a loader worker raised stands at its end
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_noted = 0  # id of the exception that has gone by already, where two of these hooks are nested


def install():
    """However often it is called: once for each hook that the program puts in the place of ours."""
    before = sys.excepthook
    if getattr(before, "is_dejas", False):
        return

    def noted(kind, error, traceback):
        raised = _note(kind, error, traceback)
        before(kind, error, traceback)
        if raised is not None:
            raise raised

    noted.is_dejas = True
    sys.excepthook = noted


def _note(kind, error, traceback):
    """Returns what a handler of the program's raised meanwhile, or None: the interpreter may run one in here."""
    global _noted
    if id(error) == _noted:
        return None
    _noted = id(error)
    raised = None
    for _ in range(2):
        try:
            from deja import engine  # with ctypes, which is not there everywhere and takes its time

            engine.note(_text(kind, error, traceback))
        except ImportError:
            pass
        except BaseException as trouble:
            if handlers.have_raised(trouble):
                raised = trouble
                continue
            print(f"deja: an exception is not noted: {trouble!r}", file=sys.stderr)
        break  # the program's own exception matters more
    return raised


def _text(kind, error, traceback):
    """'exception ValueError: text; train.py:57 in main, train.py:70 in <module>', the innermost frame first, without
    Deja's."""
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_HERE):
            frames.append(f"{os.path.basename(code.co_filename)}:{traceback.tb_lineno} in {code.co_name}")
        traceback = traceback.tb_next
    return f"exception {kind.__name__}: {_shortened(str(error))}; " + ", ".join(frames[: -_MAX_FRAMES - 1 : -1])


def _shortened(text):
    return text if len(text) <= _MOST_HEAD + _MOST_END else f"{text[:_MOST_HEAD]} … {text[-_MOST_END:]}"
