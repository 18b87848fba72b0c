"""Positions: where a thread is, in words that another run of the same recording understands.

The library counts places: operations, and beginnings of steps. Between two of them a position is the n-th time that
the thread reaches an address with its stack as high. The registers and the frame tell that n when another run passes
there: the same run has the same values.
"""
import dataclasses

import gdb

from . import images, session
from .running import Start, go_on, read_reason, restart
from .stacks import program_frame, stopped_by_deja, symbolize
from .state import NAN, NO_REASON, OFFSET_NEXT, OFFSET_STEP, OPERATION, READY, STEP, State, is_running, read

REGISTERS = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15")
MAX_FRAME_BYTES = 2048
MAIN_THREAD = "0"


@dataclasses.dataclass
class Position:
    start: session.Checkpoint  # of the run in which it was found
    step: int  # -1: before the first
    thread: str
    place: int  # 0: before its first one
    reason: int  # why the library stopped; NO_REASON: it is in the program's code
    pc: int = 0
    cfa: int = 0
    looks: tuple = ()
    hit: int = 0  # how many times the thread has come here since the place; 0: not known
    text: str = ""

    @property
    def at_place(self):
        return self.reason in (OPERATION, STEP, NAN, READY)

    def same(self, other):
        return (self.thread, self.place, self.reason, self.pc, self.cfa, self.looks) == (
            other.thread, other.place, other.reason, other.pc, other.cfa, other.looks)

    def best_start(self):
        """The latest checkpoint before it. In the code, the start that it had: addresses of memory are those of that
        run."""
        if not self.at_place:
            return self.start
        # Other threads than the one that takes the checkpoints may be ahead of it.
        return session.the.before_step(self.step if self.thread == MAIN_THREAD else self.step - 1)


def cfa_of(frame):
    """How high the stack is where the function of `frame` was called."""
    while frame.type() == gdb.INLINE_FRAME and frame.older() is not None:
        frame = frame.older()
    older = frame.older()
    return int(older.read_register("rsp")) if older is not None else 0


def looks_of(frame, cfa):
    registers = tuple(int(frame.read_register(name)) & (2**64 - 1) for name in REGISTERS)
    low = registers[REGISTERS.index("rsp")]
    size = min(max(cfa - low, 0), MAX_FRAME_BYTES)
    return registers, read(low, size) if size else b""


def likeness(mine, other):
    registers = sum(a == b for a, b in zip(mine[0], other[0]))
    return registers == len(REGISTERS), registers, sum(a == b for a, b in zip(mine[1], other[1]))


def here():
    """The current thread's position. GdbError: it has none that can be found again."""
    state = State()
    thread = state.current()
    if thread is None:
        raise gdb.GdbError("nothing is known of this thread yet: it has reached no step or operation")
    reason = read_reason() if stopped_by_deja() else NO_REASON
    position = Position(session.the.start, state.step if state.has_step else -1, thread.name,
                        thread.places[0] if thread.places else 0, reason)
    frame = program_frame() or gdb.newest_frame()
    what = state.message if reason != NO_REASON else symbolize(frame.pc())
    position.text = (f"step {state.step}, " if state.has_step else "") + what
    if reason == NO_REASON:
        frame = gdb.newest_frame()
        position.pc, position.cfa = frame.pc(), cfa_of(frame)
        position.looks = looks_of(frame, position.cfa)
    return position


class Visit(gdb.Breakpoint):
    """Counts how often the thread reaches an address with its stack as high, and stops at one of them."""

    def __init__(self, position, stop_at=0):
        super().__init__(f"*{position.pc:#x}", internal=True)
        self.silent = True
        self.thread = gdb.selected_thread().num
        self.cfa, self.stop_at, self.looks, self.reached = position.cfa, stop_at, [], False

    def stop(self):
        frame = gdb.newest_frame()
        if cfa_of(frame) != self.cfa:
            return False
        self.looks.append(looks_of(frame, self.cfa))
        self.reached = self.reached or len(self.looks) == self.stop_at
        return len(self.looks) == self.stop_at


def image_before(start, thread, place, same_memory=True):
    """An image from which the thread reaches the place, later than the start; None: there is none. In another run
    memory may have other addresses."""
    if thread != MAIN_THREAD or place == 0 or (same_memory and start is not session.the.start):
        return None
    return images.latest(lambda image: image.is_before_place(place), start)


def run_to_place(start, thread, place, mute=True, same_memory=True):
    """The program stands at the place once more. Quietly."""
    at_beginning = place == 0
    restart(start, Start(place=None if at_beginning else (thread, place), mute=mute and not at_beginning, stop=at_beginning),
            image_before(start, thread, place, same_memory))
    current = State().current() if is_running() else None
    if at_beginning and is_running() and stopped_by_deja():
        return
    if current is None or not stopped_by_deja() or current.name != thread or current.places[:1] != [place]:
        raise gdb.GdbError("the replay did not reach that place again; is the program the recorded one, and does "
                           "`deja replay` end as recorded?")


def find_hit(position, start):
    """Which of the visits since the place `position` is. Costs a run."""
    if position.hit:
        return
    run_to_place(start, position.thread, position.place)
    visit = Visit(position)
    try:
        while is_running():
            now = State()
            now.write(OFFSET_NEXT, "I", 1)
            if now.has_step:
                now.write(OFFSET_STEP, "Q", now.step + 2)  # the next one
            go_on()
            if not is_running() or not stopped_by_deja():
                break
            current = State().current()
            if read_reason() != OPERATION or (current is not None and current.name == position.thread):
                break
        seen = visit.looks
    finally:
        visit.delete()
    if not seen:
        raise gdb.GdbError("the replay did not reach this place again")
    position.hit = 1 + max(range(len(seen)), key=lambda i: likeness(position.looks, seen[i]))


def return_to(position):
    """The program stands at the position again. Quietly."""
    start = position.best_start()
    if position.reason == NO_REASON:
        find_hit(position, start)
    run_to_place(start, position.thread, position.place, same_memory=not position.at_place)
    if position.reason == NO_REASON:
        visit = Visit(position, position.hit)
        go_on()
        reached = visit.reached
        visit.delete()
        if not reached:
            raise gdb.GdbError("the replay did not reach that statement again")
    elif not position.at_place:
        go_on()  # to a divergence, or the end
