"""`deja when-changed`: between which two operations memory changed last, and then by which statement.

One run notes what is in the memory at each operation on the way here. Another one goes to the operation before the
last change, and a hardware watchpoint counts the writes from there; a third one stops at the last of them.
"""
import contextlib
import dataclasses

import gdb

from . import state
from .positions import Visit, find_hit, here, return_to, run_to_place
from .running import NO_CONDITIONS, Start, apply_conditions, go_on, quietly, read_reason, restart
from .stacks import stopped_by_deja
from .state import NO_REASON, OFFSET_NEXT, OPERATION, State, is_running
from .text import plain, say
from .travel import arrive, ways_to

WATCHED_BYTES = 8  # what one hardware watchpoint sees on every processor
MAX_BYTES = 64 << 20


@dataclasses.dataclass
class Memory:
    name: str
    address: int
    size: int

    def read(self):
        """None: it cannot be read (yet)."""
        try:
            return state.read(self.address, self.size)
        except gdb.MemoryError:
            return None


@dataclasses.dataclass
class Look:
    """What was in the memory when a thread had reached a place."""
    thread: str
    place: int
    text: str
    value: bytes


def memory_of(words):
    if not words:
        raise gdb.GdbError("usage: deja when-changed TENSOR | EXPRESSION | ADDRESS BYTES")
    now = State()
    shown = next((t for t in now.tensors if t.name == words[0] and t.role == 3), None)
    registered = next((r for r in now.registered if r.name == words[0]), None)
    if shown is not None:
        memory = Memory(words[0], shown.live, shown.count * shown.element_size())
    elif registered is not None:
        memory = Memory(words[0], registered.address, registered.size)
    else:
        memory = memory_of_expression(words)
    if not 0 < memory.size <= MAX_BYTES:
        raise gdb.GdbError(f"{plain(memory.name)}: {memory.size} bytes are no memory to look at")
    if memory.read() is None:
        raise gdb.GdbError(f"{plain(memory.name)}: the memory at {memory.address:#x} cannot be read")
    return memory


def memory_of_expression(words):
    counted = len(words) == 2 and words[1].isdigit()
    text = words[0] if counted else " ".join(words)
    try:
        value = gdb.parse_and_eval(text)
    except gdb.error as error:
        raise gdb.GdbError(f"{plain(text)}: {str(error).rstrip(chr(46))}; it is no tensor that the program shows or registers either{names_of_tensors()}") from None
    if counted:
        return Memory(text, int(value), int(words[1]))
    if value.is_optimized_out:
        raise gdb.GdbError(f"{plain(text)} is optimised out here: no memory holds it; build with -Og, or ask for what it is made from")
    if value.address is None:
        raise gdb.GdbError(f"{text} is no variable and no tensor that the program shows; of an address say how many bytes: "
                           f"deja when-changed {text} 8")
    return Memory(text, int(value.address), value.type.sizeof)


def names_of_tensors():
    now = State()
    names = sorted({t.name for t in now.tensors if t.role == 3} | {r.name for r in now.registered})
    return f" (it has {plain(', '.join(names))})" if names else ""


class Way:
    """From a start, or an image, to the position, operation by operation."""

    def __init__(self, position, start, image):
        self.position, self.start, self.image = position, start, image
        self.visit = None

    def is_there(self):
        """Called at each stop of ours."""
        if not is_running() or (self.visit is not None and self.visit.reached):
            return True
        if not stopped_by_deja():
            return False
        current = State().current()
        at_place = current is not None and (current.name, *current.places[:1]) == (self.position.thread, self.position.place)
        if not at_place:
            return read_reason() != OPERATION and not self.position.at_place
        if self.position.at_place:
            return True
        if self.position.reason == NO_REASON and self.visit is None:
            self.visit = Visit(self.position, self.position.hit)
        return False

    def leave(self):
        if self.visit is not None:
            self.visit.delete()
            self.visit = None


def looks_on(way, memory):
    """At each operation from the start on, and at the position."""
    found = []
    restart(way.start, Start({**NO_CONDITIONS, OFFSET_NEXT: ("I", 1)}, place=(way.position.thread, way.position.place), mute=True,
                             keep_images=False), way.image)
    while is_running():
        there = way.is_there()
        now = State()
        current = now.current()
        # What a late replay does before it jumps to the checkpoint is the program's beginning.
        if current is not None and (not way.start.number or now.start_step):
            found.append(Look(current.name, current.places[0] if current.places else 0, now.message, memory.read()))
        if there:
            break
        now.write(OFFSET_NEXT, "I", 1)
        go_on()
    way.leave()
    return found


def last_change(looks):
    """Position in `looks` of the one after which the memory was another one; None: it never was."""
    for i in range(len(looks) - 2, -1, -1):
        if looks[i].value is not None and looks[i + 1].value is not None and looks[i].value != looks[i + 1].value:
            return i
    return None


def first_difference(before, after):
    return next(i for i, (a, b) in enumerate(zip(before, after)) if a != b)


def watched_part(memory, address):
    """Address and size of what one watchpoint sees of the memory around that address, and of nothing beside it."""
    first = address - address % WATCHED_BYTES
    begin, end = max(first, memory.address), min(first + WATCHED_BYTES, memory.address + memory.size)
    return begin, end - begin


@contextlib.contextmanager
def watching(address, size):
    point = gdb.Breakpoint(f"*(unsigned char (*)[{size}]) {address:#x}", gdb.BP_WATCHPOINT, gdb.WP_WRITE, internal=True)
    point.silent = True
    try:
        yield
    finally:
        if point.is_valid():
            point.delete()


def writes_until(way, look):
    """How often the watched bytes change from here to the look, or to the position if there is none."""
    writes = 0
    now = State()
    apply_conditions(now, NO_CONDITIONS)
    now.mute()
    if look is not None:
        now.stop_at_place(look.thread, look.place)
    else:
        now.stop_at_place(way.position.thread, way.position.place)
        way.is_there()
    while is_running():
        go_on()
        if look is None and way.is_there():
            break
        if is_running() and not stopped_by_deja():
            writes += 1
        elif look is not None:
            break
    way.leave()
    return writes


def when_changed(words):
    memory = memory_of(words)
    position = here()
    with quietly():
        if position.reason == NO_REASON:
            find_hit(position, position.start)
        for start, image in ways_to(position):
            way = Way(position, start, image)
            looks = looks_on(way, memory)
            at = last_change(looks)
            if at is not None:
                break
        else:
            return_to(position)
            raise gdb.GdbError(f"{plain(memory.name)} has not changed between the first operation and here")
        found = go_to_write(way, memory, looks, at)
        if not found:
            return_to(position)
    until = "here" if at + 2 == len(looks) else f"\"{looks[at + 1].text}\""
    say(f"deja: {memory.name} changed last between \"{looks[at].text}\" and {until}")
    if not found:
        say("deja: no instruction of the program was seen to write there: the kernel did (a read or the like)")
    arrive()


def go_to_write(way, memory, looks, at):
    before, after = looks[at], looks[at + 1]
    offset = first_difference(before.value, after.value)
    address, size = watched_part(memory, memory.address + offset)
    # The last look is at the position, which need not be a place.
    end = after if at + 2 < len(looks) else None
    run_to_place(way.start, before.thread, before.place)
    with watching(address, size):
        writes = writes_until(way, end)
    if not writes:
        return False
    run_to_place(way.start, before.thread, before.place)
    with watching(address, size):
        while writes and is_running():
            go_on()
            if not stopped_by_deja():
                writes -= 1
    return True
