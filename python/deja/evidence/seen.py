"""What `deja check` compares besides calls: each thing that was seen is a note, `check/KIND name=value …`.

Values have no spaces: what has some is quoted as in a URL. check/notes.h reads them. Nothing is seen in a replay.
"""

import functools
import os
import sys

import deja
from deja import engine
from deja.interpreter import handlers

_HERE = os.path.dirname(os.path.abspath(deja.__file__)) + os.sep
_LIBRARIES = tuple(
    {os.path.dirname(os.__file__) + os.sep, os.path.join(sys.prefix, "lib") + os.sep, os.sep + "usr" + os.sep + "lib" + os.sep}
)
_MAX_FRAMES = 4

_digest = engine.digest_entry
_has_failed = False


def safely(function):
    """A function of Deja's, called in the program: what it raises is said once, and is not the program's. But for what
    the program's handler of a signal raises meanwhile."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        global _has_failed
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if handlers.have_raised(error):
                raise
            if not _has_failed:
                print(f"deja: not seen for `deja check`: {error!r}", file=sys.stderr, flush=True)
            _has_failed = True
            return None

    return called


def is_on():
    """Whether this process is recorded, with digests, and evidence is wanted."""
    if engine.mode() != engine.RECORDING or _digest is None:
        return False
    return engine.variable("DEJA_LEVEL") != "order" and engine.variable("DEJA_NO_EVIDENCE") != "1"


def tell(kind, /, **values):
    engine.note(f"check/{kind} " + " ".join(f"{name}={_quoted(value)}" for name, value in values.items()))


def _quoted(value):
    return str(value).replace("%", "%25").replace(" ", "%20").replace("\n", "%0A")


def digest(tensor):
    """The digest of a dense tensor in host memory, without asking torch to compute anything. A distributed tensor
    counts with this rank's part. 0: all its bytes are zero. None: unknown."""
    if hasattr(tensor, "to_local"):  # its size is that of all ranks' parts, its memory none
        tensor = tensor.to_local()
    if not tensor.is_cpu or tensor.layout is not _strided() or not tensor.is_contiguous():
        return None
    return _digest(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def digest_of_bytes(data):
    return _digest(engine.address_of(data), len(data))


def _strided():
    return sys.modules["torch"].strided


def together(digests):
    """One number for several, in their order. None where one of them is unknown."""
    digests = tuple(digests)
    if None in digests:
        return None
    value = 0
    for one in digests:
        value = (value * 0x9E3779B97F4A7C15 + one + 1) & 0xFFFFFFFFFFFFFFFF
    return value


def text_of(value):
    """The text of a digest."""
    return "unknown" if value is None else f"{value:016x}"


@functools.lru_cache(maxsize=None)
def is_of_program(filename):
    return not filename.startswith((_HERE, "<", *_LIBRARIES)) and "-packages" + os.sep not in filename


def program_frame(depth):
    """The innermost frame of the program's own code, from the caller's `depth`-th caller outwards; None."""
    frame = sys._getframe(depth + 1)
    while frame is not None and not is_of_program(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def place(depth):
    """Where the program is: 'train.py:57:main|train.py:70:<module>', the innermost of its own frames first."""
    return text_of_place(own_frames(depth + 1))


def own_frames(depth):
    """What place() says, before it is a text: few of those that are kept are ever told."""
    found, frame = [], sys._getframe(depth + 1)
    while frame is not None and len(found) < _MAX_FRAMES:
        code = frame.f_code
        if is_of_program(code.co_filename):
            found.append((code, frame.f_lineno))
        frame = frame.f_back
    return found


def text_of_place(frames):
    """frames: of own_frames()."""
    return "|".join(
        f"{os.path.basename(code.co_filename)}:{line}:{getattr(code, 'co_qualname', code.co_name)}" for code, line in frames
    )
