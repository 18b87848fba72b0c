"""Python's debugger in a replay: at the exception that ends the program, and at lines that the user names.

`deja replay RUN --rank R --pdb [--break FILE:LINE]` adds a name to PYTHONPATH, by which sitecustomize.py comes here
without a cost to other runs, and puts the lines into DEJA_PDB_BREAKS. Only the rank's own interpreter has the
debugger: not what it forks or execs. Leaving it at a line ends the replay with exit code LEFT.
"""

import os
import sys

from deja import engine
from deja.interpreter import last_exception

LEFT = 130  # for `deja replay`: the user has ended it (cli/replay/debugger/python_debugging.h)

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_pid = None  # of the process that has the debugger
_stops = 0


def begin():
    """Before the program's own modules are imported."""
    global _pid
    if engine.mode() != engine.REPLAYING or engine.variable("DEJA_CHILD") is not None:
        return
    _pid = os.getpid()
    import atexit

    last_exception.watch(post_mortem)
    os.register_at_fork(after_in_child=lambda: sys.settrace(None))

    atexit.register(_say_if_there_was_no_stop)
    lines = (engine.variable("DEJA_PDB_BREAKS") or "").split(",")
    places = [place for place in map(_find, filter(None, lines)) if place is not None]
    if places:
        _Breaks(places).begin()


def post_mortem(_kind, _error, traceback):
    """The debugger at the innermost frame of the program's own."""
    global _stops
    _stops += 1
    sys.settrace(None)
    _take_input()
    base = _debugger_class()

    class PostMortem(base):
        def get_stack(self, frame, trace):
            stack, index = super().get_stack(frame, trace)
            own = (i for i in range(index, -1, -1) if is_own(stack[i][0].f_code.co_filename))
            return stack, next(own, index)

    debugger = PostMortem()
    debugger.reset()
    _say("the recorded run ends with this exception; `q` ends the replay")
    debugger.interaction(None, traceback)


def _debugger_class():
    """ipdb's where it is installed and a terminal is there to use it, else pdb's."""
    import pdb

    if sys.stdin is not None and sys.stdin.isatty():
        try:
            import ipdb  # noqa: F401  IPython alone is no wish for it
            from IPython.terminal.debugger import TerminalPdb

            return TerminalPdb
        except Exception:  # not installed, or not fit for this terminal
            pass
    return pdb.Pdb


def is_own(file):
    """Whether the user has written it, rather than a package or Deja."""
    return "site-packages" not in file and not file.startswith((_HERE, sys.base_prefix, "<"))


def _take_input():
    """`multiprocessing` gives its processes /dev/null as sys.stdin, but leaves descriptor 0 as it is."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.fileno() != 0:
        sys.stdin = open(0, closefd=False)


def _say(text):
    print(f"deja: {text}", file=sys.stderr, flush=True)


def _say_if_there_was_no_stop():
    if os.getpid() == _pid and _stops == 0:
        _say("pdb: the program ended without an exception, and reached none of the --break lines")


def _find(place):
    """FILE:LINE as the path that code objects have, and the line; None after a message."""
    name, _, line = place.rpartition(":")
    folders = [os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0])) if sys.argv[0:1] else ""]
    script = _script()
    if script:
        folders.append(os.path.dirname(script))
    for folder in [*folders, *sys.path]:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return os.path.abspath(path), int(line)
    _say(f"pdb: --break {place}: no such file in {folders[-1] or folders[0]} or on Python's path; give its path")
    return None


def _script():
    """The program's script, before the interpreter has put it into sys.argv; None: not known."""
    words = getattr(sys, "orig_argv", sys.argv)[1:]
    return next((os.path.abspath(word) for word in words if word.endswith(".py") and os.path.isfile(word)), None)


class _Breaks:
    """Breakpoints that cost the rest of the program one call of a small function for each of its own calls."""

    def __init__(self, places):
        base = _debugger_class()
        breaks = self

        class Debugger(base):
            def set_continue(self):
                super().set_continue()
                if self.breaks:
                    breaks.watch()

            def set_quit(self):
                sys.settrace(None)
                _say("pdb: left; nothing is compared from here on")
                sys.stdout.flush()
                os._exit(LEFT)

            def user_line(self, frame):
                global _stops
                _stops += 1
                _take_input()
                super().user_line(frame)

        self._debugger = Debugger()
        self._files = set()
        for path, line in places:
            trouble = self._debugger.set_break(path, line)
            if trouble:
                _say(f"pdb: --break {path}:{line}: {trouble}")
            else:
                self._files.add(path)

    def begin(self):
        if not self._files:
            return
        self._debugger.reset()
        self._debugger.botframe = sys._getframe()
        self._debugger.set_continue()

    def watch(self):
        debugger, files, trusted = self._debugger, self._files, {}

        def called(frame, event, arg):
            name = frame.f_code.co_filename
            here = trusted.get(name)
            if here is None:
                here = trusted[name] = os.path.abspath(name) in files or bool(debugger.break_anywhere(frame))
            return debugger.trace_dispatch(frame, event, arg) if here else None

        sys.settrace(called)
