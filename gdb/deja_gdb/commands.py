"""The list of commands. `deja help NAME` of gdb is `help deja NAME`."""
import difflib

import gdb

from . import breakpoints, child, children, frames, images, libraries, reverse_next, running, session, travel, when_changed
from .running import go
from .stacks import python_stack, recorded_stack
from .state import OFFSET_COMM, OFFSET_EXIT, OFFSET_NAN, OFFSET_NEXT, OFFSET_SEQ, OFFSET_STEP
from .tensors import tensor

class Deja(gdb.Command):
    """Commands for a replay by Deja. `deja help` lists them."""

    def __init__(self):
        super().__init__("deja", gdb.COMMAND_USER, prefix=True)

    def invoke(self, argument, from_tty):
        words = argument.split()
        if not words:
            return help_text()
        near = difflib.get_close_matches(words[0], [name for name, _, _ in COMMANDS], n=1)
        hint = f"did you mean `deja {near[0]}`?" if near else "`deja help` lists them"
        raise gdb.GdbError(f"there is no command `deja {words[0]}`; {hint}")


class Again(gdb.Command):
    """A command of gdb's that goes backwards, for which gdb itself has no means here."""

    def __init__(self, name, function, document):
        self.__doc__ = document
        self.function = function
        super().__init__(name, gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        if argument:
            raise gdb.GdbError("in a replay this command takes no argument")
        self.function([])


class Sub(gdb.Command):
    def __init__(self, name, function, document):
        self.__doc__ = document
        self.function = function
        super().__init__("deja " + name, gdb.COMMAND_USER)

    def invoke(self, argument, from_tty):
        self.function(gdb.string_to_argv(argument))


HELP = [
    ("where", "where the replay is: step, last call of each thread, how the recording ends"),
    ("next", "go on to the next collective or point-to-point operation"),
    ("until step N", "go on to the beginning of step N"),
    ("until seq N [comm C]", "go on to operation N (of communicator C)"),
    ("until nan", "go on to the first operation that a NaN goes into or comes out of"),
    ("until divergence", "go on until the replay differs from the recording, or to its end"),
    ("until end", "go on to the end of the recording: a crash, a call that never returned, or the exit"),
    ("goto step N", "go to the beginning of step N, forwards or backwards"),
    ("goto seq N [comm C]", "go to operation N (of communicator C), forwards or backwards"),
    ("goto mark NAME", "go to a place that `deja mark` has named"),
    ("goto end", "go to the end of the recording"),
    ("back", "go back to the stop before this one"),
    ("reverse-next", "go back to the statement before this one, over calls"),
    ("reverse-continue", "go back to the stop of a breakpoint before this"),
    ("reverse-stepi", "go back one instruction, over calls; gdb's rn, rc and rsi are these three"),
    ("when-changed TENSOR|EXPRESSION", "go back to the statement that changed it last"),
    ("mark NAME", "name the current place"),
    ("marks", "list named places, steps with checkpoints, and the program's notes"),
    ("tensor send|recv|NAME [COUNT]", "elements of the current operation's tensor, or of a deja_tensor snapshot: live "
                                      "beside recorded; of a registered tensor the live ones"),
    ("tensor send|recv|NAME --save FILE", "the same as files for numpy.load: FILE and, if kept, FILE's recorded twin"),
    ("recorded-stack", "where the recorded run made the current call (or crashed), beside the live stack"),
    ("py-stack", "where the program of Python is, and where the recorded run was; needs no python3-dbg"),
    ("frames on|off", "show Deja's own frames in backtraces, or leave them out (off; `bt -no-filters` for once)"),
    ("help", "this list"),
]


def help_text(_=None):
    for usage, text in HELP:
        print(f"deja {usage:<34} {text}")
    print("Everything else is gdb's: break, backtrace, print, x … The program's stops at a divergence and at the\n"
          "end of the recording need no command.")


def parse_number(words, what):
    try:
        return int(words[0], 0)
    except (IndexError, ValueError):
        raise gdb.GdbError(f"give a number: deja until {what}") from None


def until(words):
    kind, rest = (words[0], words[1:]) if words else ("", [])
    if kind == "step":
        step = parse_number(rest, "step N")
        session.the.check_step(step)
        return go({OFFSET_STEP: ("Q", step + 1)})
    if kind == "seq":
        conditions = {OFFSET_SEQ: ("Q", parse_number(rest, "seq N [comm C]"))}
        if len(rest) > 1:
            if rest[1] != "comm":
                raise gdb.GdbError("usage: deja until seq N [comm C]")
            conditions[OFFSET_COMM] = ("I", parse_number(rest[2:], "seq N comm C") + 1)
        comm = conditions[OFFSET_COMM][1] - 1 if OFFSET_COMM in conditions else None
        session.the.check_operation(conditions[OFFSET_SEQ][1], comm)
        return go(conditions)
    if kind == "nan":
        return go({OFFSET_NAN: ("I", 1)})
    if kind in ("divergence", "end"):  # without a divergence it stands at the end
        return go({OFFSET_EXIT: ("I", 1)})
    raise gdb.GdbError("usage: deja until step N | seq N [comm C] | nan | divergence | end")


def stacks_of_both(words):
    libraries.before_stack()
    recorded_stack(words)


def next_operation(_):
    go({OFFSET_NEXT: ("I", 1)})


AGAIN = """
Backwards means that the program goes on from an image of it before (kept by fork on the way, of a program with one
thread), or is started again, from the latest checkpoint before (`deja record --checkpoint-every`) or from its beginning,
and runs to there as it was recorded. Breakpoints, watchpoints and displays are kept; what the
program had printed is not printed again."""

COMMANDS = [
    ("where", lambda words: running.where(), "Where the replay is."),
    ("next", next_operation, "Go on to the next collective or point-to-point operation."),
    ("until", until, "Go on until: step N | seq N [comm C] | nan | divergence | end."),
    ("goto", travel.goto, "Go to step N | seq N [comm C] | mark NAME | end, forwards or backwards.\n" + AGAIN),
    ("back", travel.back, "Go back to the stop before this one.\n" + AGAIN),
    ("reverse-next", reverse_next.reverse_next, "Go back to the statement before this one, over calls.\n" + AGAIN),
    ("reverse-continue", travel.reverse_continue, "Go back to the stop of a breakpoint before this.\n" + AGAIN),
    ("reverse-stepi", reverse_next.reverse_stepi, "Go back one instruction, over calls.\n" + AGAIN),
    ("when-changed", when_changed.when_changed, "Go back to the statement that last changed a snapshot's tensor, a variable, "
     "or memory: TENSOR | EXPRESSION | ADDRESS BYTES.\n" + AGAIN),
    ("mark", travel.mark, "Name the current place, for `deja goto mark NAME`."),
    ("marks", travel.marks, "List named places, steps with checkpoints, and the program's notes."),
    ("tensor", tensor, "Show a tensor of the current operation, a snapshot or a registered tensor, or save it for numpy.load: "
     "send|recv|NAME [COUNT] [--save FILE]."),
    ("frames", frames.frames, "Show Deja's own frames in backtraces (on), or leave them out (off)."),
    ("recorded-stack", stacks_of_both, "The recorded stack beside the live one."),
    ("py-stack", python_stack, "Python's stack, live and recorded."),
    ("help", help_text, "List Deja's commands."),
]


# gdb's own names of what goes backwards, long and short.
OF_GDB = {"reverse-next": ("reverse-next", "rn"), "reverse-continue": ("reverse-continue", "rc"),
          "reverse-stepi": ("reverse-stepi", "rsi")}


def install():
    interactive = gdb.parameter("confirm")
    session.install()
    images.install()
    children.install()
    libraries.install()
    if session.the.child:
        child.install()
    Deja()
    for name, function, document in COMMANDS:
        Sub(name, function, document)
        for of_gdb in OF_GDB.get(name, ()):
            Again(of_gdb, function, document)
    breakpoints.install()
    frames.install()
    running.install()
    running.stop_listeners.append(travel.remember)
    if interactive:
        print("Deja's commands are here: `deja help` lists them, `run` starts the replay.")
