"""`deja reverse-next`, `deja reverse-stepi`: the program starts again, and the way here is noted."""
import dataclasses

import gdb

from .positions import MAIN_THREAD, Position, Visit, cfa_of, find_hit, here, return_to, run_to_place
from .running import go_on, quietly
from .stacks import program_frame, stopped_by_deja
from .state import NO_REASON, State, is_running
from .travel import arrive

OFTEN = 10  # a loop: first it is seen whether something comes after it
VERY_OFTEN = 400  # a loop that is gone over as one statement
MAX_INSTRUCTIONS = 4000  # of a function, for breakpoints on all of them

@dataclasses.dataclass
class Passed:
    """The thread has reached the beginning of a line."""
    pc: int
    cfa: int
    line: int
    place: int
    hit: int


class LinePoint(gdb.Breakpoint):
    """Leaves a trail, until it has been hit too often."""

    def __init__(self, pc, line, trail, most):
        super().__init__(f"*{pc:#x}", internal=True)
        self.silent = True
        self.thread = gdb.selected_thread().num
        self.pc, self.line, self.trail, self.left = pc, line, trail, most

    def stop(self):
        self.left -= 1
        if self.left >= 0:
            self.trail.add(self.pc, self.line)
        return self.left < 0


class Trail:
    def __init__(self, heights):
        self.heights, self.passed, self.counts = heights, [], {}
        self.place = State().places_of_current()

    def add(self, pc, line):
        cfa = cfa_of(gdb.newest_frame())
        if cfa not in self.heights:
            return
        key = pc, cfa, self.place()
        self.counts[key] = self.counts.get(key, 0) + 1
        self.passed.append(Passed(pc, cfa, line, key[2], self.counts[key]))


def function_of(frame):
    """The outermost function's block that has the frame's address; None: gdb knows none."""
    block = gdb.block_for_pc(frame.pc())
    function = None
    while block is not None and not block.is_static and not block.is_global:
        function = block if block.function is not None else function
        block = block.superblock
    return function


def instructions_of(frame):
    """{address: address} of the frame's function, as lines_of has lines; empty where there are too many."""
    function = function_of(frame)
    if function is None:
        return {}
    found = frame.architecture().disassemble(function.start, function.end - 1)
    return {one["addr"]: one["addr"] for one in found} if len(found) <= MAX_INSTRUCTIONS else {}


def lines_of(frame):
    """{address: line} where lines of the frame's function begin."""
    sal = gdb.find_pc_line(frame.pc())
    function = function_of(frame)
    if sal.symtab is None or function is None:
        return {}
    lines = {}
    previous = None
    for entry in sal.symtab.linetable():
        if function.start <= entry.pc < function.end and (entry.line != previous or entry.pc == frame.pc()):
            lines[entry.pc] = entry.line
        previous = entry.line
    return lines


def caller_of(frame):
    while frame.type() == gdb.INLINE_FRAME and frame.older() is not None:
        frame = frame.older()
    return frame.older()


def windows(position, places):
    """Places before the position from which to look, nearer ones first."""
    before = places if position.reason == NO_REASON else places[1:]
    found = [before[i] for i in (0, 1, 3, 6) if i < len(before)]
    return found + ([0] if position.thread == MAIN_THREAD else [])


class Here:
    """The position, and the statement in which it is."""

    def __init__(self, lines_in=lines_of):
        """`lines_in`: the statements of a frame's function, by address."""
        self.position = here()
        frame = program_frame()
        self.lines = lines_in(frame) if frame is not None else {}
        if not self.lines:
            raise gdb.GdbError("there is no line information here; `deja back` and `deja goto` need none")
        innermost = frame == gdb.newest_frame()
        self.begins = innermost and frame.pc() in self.lines
        self.line = self.lines[frame.pc()] if self.begins else gdb.find_pc_line(frame.pc() - (0 if innermost else 1)).line
        self.cfa = cfa_of(frame)
        self.heights = {self.cfa}
        caller = caller_of(frame)
        if caller is not None:
            self.heights.add(cfa_of(caller))
            self.lines = {**lines_in(caller), **self.lines}
        self.places = State().current().places


def reverse_next(_):
    go_back_one(Here())


def reverse_stepi(_):
    """The same with each instruction as a statement: those of this function, and the call in its caller."""
    if stopped_by_deja():
        raise gdb.GdbError("the replay is at a stop of Deja's, in no instruction of the program; `deja reverse-next` goes back")
    go_back_one(Here(instructions_of))


def go_back_one(at):
    with quietly():
        if at.position.reason == NO_REASON:
            find_hit(at.position, at.position.start)
        if not any(go_before(at, place) for place in windows(at.position, at.places)):
            return_to(at.position)
            raise gdb.GdbError("there is no statement before this one that can be found")
    arrive()


def go_before(at, place):
    """Goes to the statement before, if the thread reaches it after the place."""
    run_to_place(at.position.start, at.position.thread, place)
    passed, often = follow(at, place, at.lines, OFTEN)
    target = before_in([one for one in passed if one.pc not in often], at)
    if target is None:
        return False
    near = Position(at.position.start, at.position.step, at.position.thread, target.place, NO_REASON, target.pc,
                    target.cfa, hit=target.hit)
    return_to(near)
    if not often:
        return True
    # What is passed very often may have been passed after that, too.
    passed, too_often = follow(at, target.place, {pc: at.lines[pc] for pc in often}, VERY_OFTEN)
    later = None if too_often else before_in(passed, at)
    return_to(near)
    if later is not None:
        visit = Visit(later, 1 + [one for one in passed if (one.pc, one.cfa) == (later.pc, later.cfa)].index(later))
        go_on()
        visit.delete()
    return True


def follow(at, place, lines, most):
    """The lines that the thread passes on its way from here, after the place, to the position; and addresses that it
    passes more than `most` times, on which nothing more is said."""
    position = at.position
    trail = Trail(at.heights)
    points = [LinePoint(pc, line, trail, most) for pc, line in lines.items()]
    often = set()

    def go():
        go_on()
        while is_running() and any(p.enabled and p.left < 0 for p in points):
            for point in points:
                if point.enabled and point.left < 0:
                    often.add(point.pc)
                    point.enabled = False
            go_on()

    visit = None
    try:
        if place != position.place:
            State().stop_at_place(position.thread, position.place)
            go()
        if position.reason == NO_REASON:
            visit = Visit(position, position.hit)
            while is_running() and not visit.reached:
                go()
        elif not position.at_place:
            go()
    finally:
        for point in points + ([visit] if visit else []):
            point.delete()
    # Where it stands now is not on the way.
    last = trail.passed[-1] if trail.passed else None
    if position.reason == NO_REASON and last and (last.pc, last.cfa) == (position.pc, position.cfa):
        trail.passed.pop()
    return trail.passed, often


def before_in(passed, at):
    """The beginning of the statement before: of this line, if the position is inside of it. None: not on this way."""
    if not passed:
        return None
    last = passed[-1]
    if not at.begins and (last.cfa, last.line) != (at.cfa, at.line):
        # The way begins inside of this line, or it was called from here.
        return None if last.cfa == at.cfa and len(passed) == 1 else last
    first = last
    for one in reversed(passed):
        if (one.cfa, one.line) != (last.cfa, last.line):
            break
        first = one
    return first
