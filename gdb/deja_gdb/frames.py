"""Backtraces show the program: the frames of Deja's libraries in them are left out, by a frame filter of gdb.

`bt -no-filters` shows all frames, `deja frames on` does for the session. The numbers of frames stay gdb's own.
"""
import gdb
from gdb.FrameDecorator import FrameDecorator

from .stacks import is_own, objfile_of
from .text import say


class Shown(FrameDecorator):
    """A frame of the program's. gdb prints the arguments, so the name comes without the types of them."""

    def function(self):
        return self.inferior_frame().name() or super().function()


class OwnFrames:
    """Leaves Deja's frames out. A thread that is Deja's alone is shown as it is."""

    def __init__(self):
        self.name, self.enabled, self.priority = "deja", True, 50
        gdb.frame_filters[self.name] = self

    def filter(self, decorators):
        own = []
        for decorator in decorators:
            if own is not None and is_own(objfile_of(decorator.inferior_frame())):
                own.append(decorator)
                continue
            if own is None and is_own(objfile_of(decorator.inferior_frame())):
                continue
            own = None
            yield Shown(decorator)
        yield from own or []


_filter = None


def frames(words):
    if words not in (["on"], ["off"]):
        raise gdb.GdbError("usage: deja frames on | off")
    _filter.enabled = words == ["off"]
    say(f"deja: backtraces {'leave out' if _filter.enabled else 'show'} the frames of Deja's libraries")


def install():
    global _filter
    _filter = OwnFrames()
