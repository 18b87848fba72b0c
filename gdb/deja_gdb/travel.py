"""Backwards and forwards: `deja goto`, `deja back`, `deja reverse-continue`, `deja marks`."""
import gdb

from . import images, running, session
from .positions import MAIN_THREAD, Visit, find_hit, here, return_to, run_to_place
from .running import Start, announce, at_end, go, go_on, quietly, restart
from .stacks import stopped_by_deja
from .state import NO_REASON, OFFSET_COMM, OFFSET_EXIT, OFFSET_SEQ, OFFSET_STEP, State, is_running
from .text import say

MAX_HISTORY = 1000
_history = []  # positions of stops, the last is the current one
_marks = {}


def remember():
    """At each stop that the user sees, so that `deja back` finds it."""
    if not is_running():
        return
    try:
        position = here()
    except (gdb.error, gdb.GdbError):
        return
    if not _history or not _history[-1].same(position):
        _history.append(position)
    del _history[:-MAX_HISTORY]


def arrive(keep_history=False):
    announce()
    if not keep_history:
        remember()


# ---- goto

def number_of(words, usage):
    try:
        return int(words[0], 0)
    except (IndexError, ValueError):
        raise gdb.GdbError(f"give a number: deja goto {usage}") from None


def goto(words):
    kind, rest = (words[0], words[1:]) if words else ("", [])
    if kind == "step":
        return goto_step(number_of(rest, "step N"))
    if kind == "seq":
        comm = None
        if len(rest) > 1:
            if rest[1] != "comm":
                raise gdb.GdbError("usage: deja goto seq N [comm C]")
            comm = number_of(rest[2:], "seq N comm C")
        return goto_operation(number_of(rest, "seq N [comm C]"), comm)
    if kind == "mark":
        return goto_mark(" ".join(rest))
    if kind == "end":
        return goto_end()
    raise gdb.GdbError("usage: deja goto step N | seq N [comm C] | mark NAME | end")


def travel(start, conditions, is_before):
    """To where `conditions` stop the program, from an image or a checkpoint."""
    image = images.latest(is_before, start)
    if image is None:
        start = session.the.nearest_sound(start)
        image = images.latest(is_before, start)
    with quietly():
        restart(start, Start(conditions, mute=session.the.runs > 0), image)
    arrive()


def goto_step(step):
    session.the.check_step(step)
    conditions = {OFFSET_STEP: ("Q", step + 1)}
    start = session.the.before_step(step)
    if is_running() and not at_end():
        state = State()
        if (state.step if state.has_step else -1) < step and start.step <= state.step:
            return go_forward(conditions)
    travel(start, conditions, lambda image: image.is_before_step(step))
    expect(is_running() and State().step == step and State().has_step, f"step {step}")


def goto_operation(seq, comm):
    session.the.check_operation(seq, comm)
    conditions = {OFFSET_SEQ: ("Q", seq)}
    if comm is not None:
        conditions[OFFSET_COMM] = ("I", comm + 1)
    start = session.the.before_operation(seq, comm)
    if is_running() and not at_end() and comm is not None:
        state = State()
        last = max((t.seq for t in state.threads if t.comm == comm + 1), default=0)
        if 0 < last < seq and start.step <= (state.step if state.has_step else -1):
            return go_forward(conditions)
    travel(start, conditions, lambda image: image.is_before_operation(seq))
    current = State().current() if is_running() else None
    expect(current is not None and current.seq == seq, f"operation {seq}")


def expect(reached, what):
    if not reached:
        raise gdb.GdbError(f"the replay did not reach {what}: it is where the recording ends, or not in it")


def go_forward(conditions):
    with quietly():
        running.apply_conditions(State(), {**running.NO_CONDITIONS, **conditions})
        go_on()
    arrive()


def goto_end():
    if is_running() and not at_end():
        return go({OFFSET_EXIT: ("I", 1)})
    last = max(session.the.checkpoints, key=lambda c: c.step, default=session.START)
    travel(last, {OFFSET_EXIT: ("I", 1)}, lambda image: True)


# ---- back, marks

def back(_):
    """To the stop before this one."""
    if is_running() and _history:
        _history.pop()
    if not _history:
        raise gdb.GdbError("there is no earlier stop to go back to")
    with quietly():
        return_to(_history[-1])
    arrive(keep_history=True)


def mark(words):
    name = " ".join(words)
    if not name:
        raise gdb.GdbError("usage: deja mark NAME")
    _marks[name] = position = here()
    if position.thread == MAIN_THREAD:
        images.pin_nearest(lambda image: image.is_before_place(position.place))
    say(f"deja: mark '{name}': {_marks[name].text}")


def goto_mark(name):
    if name not in _marks:
        raise gdb.GdbError(f"there is no mark '{name}'; `deja marks` lists them")
    with quietly():
        return_to(_marks[name])
    arrive()


def marks(_):
    for name, position in _marks.items():
        say(f"mark {name}: {position.text}")
    for checkpoint in session.the.checkpoints:
        say(f"step {checkpoint.step}: checkpoint, {checkpoint.size} bytes")
    for note in session.the.notes:
        before = "before the first step" if note["step"] is None else f"step {note['step']}"
        say(f"{before}: note '{note['text']}'")
    if not _marks and not session.the.checkpoints and not session.the.notes:
        say("no marks (`deja mark NAME`), checkpoints or notes")


# ---- reverse-continue

def reverse_continue(_):
    position = here()
    if not running.users_breakpoints():
        raise gdb.GdbError("there is no breakpoint to go back to: set one, or use `deja goto` or `deja back`")
    with quietly(keep_breakpoints=True):
        if position.reason == NO_REASON:
            with quietly():
                find_hit(position, position.start)
        for start, image in ways_to(position):
            stops = user_stops(start, position, image)
            if stops:
                break
        else:
            with quietly():
                return_to(position)
            raise gdb.GdbError("no breakpoint was hit before this")
        go_to_stop(start, stops[-1])
    arrive()


def ways_to(position):
    """(start, image) from which the program reaches the position, the nearest first. The distance grows from one to
    the next: to change to an image takes longer than many steps."""
    start = session.the.start
    if position.thread == MAIN_THREAD and position.place and position.start is start:
        # From one that stands at the position itself nothing is passed.
        before = [image for image in reversed(images.kept()) if image.is_before_place(position.place)
                  and not (position.at_place and image.place == position.place)]
        at = 0
        while at < len(before):
            yield start, before[at]
            at = 2 * at + 1
        if before and at // 2 != len(before) - 1:
            yield start, before[-1]
    for earlier in session.the.earlier(position.start):
        yield earlier, None


def user_stop():
    """(thread, place) of a stop that is the user's."""
    current = State().current()
    return (current.name, current.places[0] if current.places else 0) if current is not None else ("", 0)


def user_stops(start, position, image):
    """The stops of the user's breakpoints from `start` to the position, as (thread, place, how many of them since)."""
    restart(start, Start(place=(position.thread, position.place), mute=True), image)
    visit = None
    found = []
    counts = {}
    while is_running():
        if visit is not None and visit.reached:
            break
        if stopped_by_deja():
            if position.reason != NO_REASON or visit is not None:
                break
            visit = Visit(position, position.hit)
        elif not session.the.start.number or State().start_step:
            # What a late replay does before it jumps to the checkpoint is the program's beginning.
            at = user_stop()
            counts[at] = counts.get(at, 0) + 1
            found.append((*at, counts[at]))
        go_on()
    if visit is not None:
        visit.delete()
    return found


def go_to_stop(start, stop):
    thread, place, count = stop
    with quietly():
        run_to_place(start, thread, place)
    while count and is_running():
        go_on()
        if is_running() and not stopped_by_deja() and user_stop() == (thread, place):
            count -= 1
