"""Going on, and what is said when the program stops."""
import contextlib

import gdb

from . import images, libraries, session, status_line, symbols
from .stacks import is_own, program_frame, stopped_by_deja
from .state import (END, OFFSET_COMM, OFFSET_EXIT, OFFSET_KEEP_IMAGES, OFFSET_NAN, OFFSET_NEXT, OFFSET_SEQ, OFFSET_STEP, OFFSET_WATCHED, READY,
                    State, address_of_symbol, is_running)
from .text import say

OWN_THREAD = "deja-replay"  # common/runtime/own_thread_name.h

NO_CONDITIONS = {OFFSET_NEXT: ("I", 0), OFFSET_NAN: ("I", 0), OFFSET_COMM: ("I", 0), OFFSET_SEQ: ("Q", 0),
                 OFFSET_STEP: ("Q", 0), OFFSET_EXIT: ("I", 0)}


class Start:
    """What the next run gets when the library is set up."""

    def __init__(self, conditions=None, place=None, mute=False, stop=False, keep_images=True):
        self.conditions, self.place, self.mute, self.stop = {**NO_CONDITIONS, **(conditions or {})}, place, mute, stop
        self.keep_images = keep_images

    def apply(self, state):
        state.write(OFFSET_WATCHED, "I", 1)
        # Images of a child would be its parent's children, who may wait for them.
        state.write(OFFSET_KEEP_IMAGES, "I", int(self.keep_images and not session.the.child))
        apply_conditions(state, self.conditions)
        state.stop_at_place(*(self.place or ("", 0)))
        state.mute(self.mute)


class StopPoint(gdb.Breakpoint):
    """Where the library stops the program. Decides with memory alone."""

    start = Start()
    instance = None

    def __init__(self):
        super().__init__("deja_replay_stop", internal=True)
        self.silent = True

    def stop(self):
        if read_reason() != READY:
            return True
        StopPoint.start, start = Start(), StopPoint.start
        libraries.on_ready()
        start.apply(State())
        status_line.follow()
        return start.stop


def on_new_objfile(event):
    # The library is there: a breakpoint made earlier would complain that it cannot find its function.
    if is_own(event.new_objfile.filename) and StopPoint.instance is None:
        StopPoint.instance = StopPoint()


def read_reason():
    # The second argument of deja_replay_stop; the state's own copy is written inside that function.
    return int(gdb.newest_frame().read_register("rsi")) & 0xFFFFFFFF


def apply_conditions(state, conditions):
    for offset, (fmt, value) in conditions.items():
        state.write(offset, fmt, value)


def go(conditions):
    """Runs, or goes on, until the library stops because of one of `conditions` (or at a divergence or the end)."""
    wanted = {**NO_CONDITIONS, **conditions}
    with no_thread_events(), status_line.shown():
        if is_running():
            apply_conditions(State(), wanted)
            status_line.follow()
            gdb.execute("continue")
        else:
            StopPoint.start = Start(wanted)
            gdb.execute("run")


_way = ""  # how the program got where it is, for the next announcement


def restart(checkpoint, start, image=None):
    """Starts the program again, or goes on with an image of it. Says nothing but that a checkpoint is damaged, in
    whose place the one before it is used (session.the.start)."""
    global _way
    if image is None:
        checkpoint = session.the.nearest_sound(checkpoint)
    anew = session.the.runs > 0
    read = libraries.known()
    with symbols.kept():
        if is_running():
            if image is None:
                images.say_why_not(State().no_images)
            gdb.execute("kill", to_string=True)
        if image is not None:
            _way = f"went back to {image.describe()}"
            images.wake(image)
            libraries.after_attach(read)
        else:
            if checkpoint.number:
                _way = f"started again from the checkpoint of step {checkpoint.step}"
            else:
                _way = "started again from the beginning" if anew else ""
            session.the.next = checkpoint
            StopPoint.start = start
            gdb.execute("run", to_string=True)
    if image is not None:
        start.apply(State())
        images.go_on_in_image()
        go_on()


def go_on():
    status_line.follow()
    gdb.execute("continue", to_string=True)


# ---- what is said

stop_listeners = []  # called at each stop that the user sees
_quiet = 0


def users_breakpoints():
    """Those that are on; ours have negative numbers."""
    return [b for b in gdb.breakpoints() if b.number > 0 and b.enabled]


@contextlib.contextmanager
def no_thread_events():
    """gdb writes "[New Thread …]" in pieces while the program runs: what that prints would come between them."""
    before = gdb.parameter("print thread-events")
    gdb.execute("set print thread-events off")
    try:
        yield
    finally:
        gdb.execute(f"set print thread-events {'on' if before else 'off'}")


@contextlib.contextmanager
def quietly(keep_breakpoints=False):
    """Stops in here are only ours. The user's breakpoints are off, or say nothing."""
    global _quiet
    _quiet += 1
    found = [(b, b.silent) for b in users_breakpoints()]
    for breakpoint, _ in found:
        breakpoint.silent = True
        breakpoint.enabled = keep_breakpoints
    try:
        with no_thread_events(), status_line.shown():
            yield
    finally:
        _quiet -= 1
        for breakpoint, silent in found:
            if breakpoint.is_valid():
                breakpoint.silent = silent
                breakpoint.enabled = True


def on_stop(event):
    if _quiet:
        return
    status_line.hide()
    libraries.on_stop()
    if isinstance(event, gdb.BreakpointEvent) and any(isinstance(b, StopPoint) for b in event.breakpoints):
        say_why()
        show_program()
    elif address_of_symbol("deja_replay_state") is not None:
        where(brief=True)
    for listener in stop_listeners:
        listener()


def say_why():
    """Why the library stopped, and how far the replay is."""
    state = State()
    say(f"deja: {state.message}")
    if state.has_step:
        say(f"deja: step {state.step}, {state.operations} operations served, {state.compared} digests compared, "
              f"{state.different} different")


def show_program():
    """The program's frame instead of Deja's; of its first thread, where a thread of Deja's own has found the end."""
    if gdb.selected_thread().name == OWN_THREAD:
        inferior = gdb.selected_inferior()
        next(thread for thread in inferior.threads() if thread.ptid[1] == inferior.pid).switch()
    frame = program_frame()
    if frame is not None:
        frame.select()
        gdb.execute("frame")


def announce():
    """What a stop says, at the end of a quiet journey."""
    global _way
    if _way:
        say(f"deja: {_way}")
    _way = ""
    if not is_running():
        say("deja: the program has ended")
        return
    libraries.on_stop()
    if stopped_by_deja() and read_reason() != READY:
        say_why()
    else:
        where(brief=True)
    show_program()
    gdb.execute("display")


def at_end():
    return not is_running() or (stopped_by_deja() and read_reason() == END)


def where(brief=False):
    try:
        state = State()
    except gdb.GdbError as error:
        if not brief:
            raise
        say(f"deja: {error}")
        return
    current = state.current()
    step = f"step {state.step}, " if state.has_step else ""
    last = f"last call: {current.describe()}" if current is not None else "no call on this thread yet"
    child = f"child {session.the.child}, " if session.the.child else ""
    say(f"deja: rank {session.the.rank}, {child}{step}{last}")
    if brief:
        return
    say(f"      {state.operations} operations served, {state.compared} digests compared, "
          f"{state.different} different")
    say(f"      the recording ends with: {state.end_text}")
    for thread in state.threads:
        if current is None or thread.tid != current.tid:
            say(f"      thread {thread.name} ({thread.tid}): {thread.describe()}")


def prompt(_):
    """"(gdb, step 12) ": where the replay is."""
    try:
        state = State()
    except (gdb.error, gdb.GdbError):
        return None  # the replay is not running
    return f"(gdb, step {state.step}) " if state.has_step else None


def install():
    gdb.events.new_objfile.connect(on_new_objfile)
    gdb.events.stop.connect(on_stop)
    gdb.prompt_hook = prompt
