"""Deja's commands for gdb: where a replay is, and running it to a place of interest.

Loaded by `deja replay --gdb`. The replay library inside the program keeps its position in the exported
structure `deja_replay_state` (replayer/position.h has its layout) and calls `deja_replay_stop` where it
shall stop; these commands read and write that memory. No function of the program is ever called and no
register is written, so all this works in stripped programs, in signal handlers, and on machines whose
processor state this gdb cannot write. Type `deja help`.
"""
import os
import struct

import gdb

MAGIC = 0x315453504A4544
VERSION = 1
READY, OPERATION, STEP, NAN, DIVERGENCE, END = 1, 2, 3, 4, 5, 6

# replayer/position.h
HEADER = struct.Struct("<QII IIII QQ IIII IIQ QQQ IIII 1024s256s")
TENSOR = struct.Struct("<64sIIQQQQII")
FRAME = struct.Struct("<QQ")
THREAD = struct.Struct("<32s40siIQII")
TENSORS, FRAMES, THREADS = 32, 64, 64
OFFSET_WATCHED, OFFSET_NEXT, OFFSET_NAN, OFFSET_COMM, OFFSET_SEQ, OFFSET_STEP, OFFSET_EXIT = 16, 20, 24, 28, 32, 40, 64

DTYPES = {0: ("int8", "b"), 1: ("uint8", "B"), 2: ("int32", "i"), 3: ("uint32", "I"), 4: ("int64", "q"),
          5: ("uint64", "Q"), 6: ("float16", "e"), 7: ("float32", "f"), 8: ("float64", "d"), 9: ("bfloat16", None),
          10: ("float8_e4m3", None), 11: ("float8_e5m2", None), 255: ("bytes", "B")}
ROLES = {1: "send", 2: "recv", 3: "snapshot"}
SHOWN = 8


def text_of(raw):
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def address_of_symbol(name):
    """Address of one of the library's exported names; works without debug information."""
    try:
        return int(gdb.parse_and_eval("(unsigned long)&" + name))
    except gdb.error:
        return None


def is_running():
    return gdb.selected_inferior().pid != 0


class State:
    """One reading of deja_replay_state."""

    def __init__(self):
        self.address = address_of_symbol("deja_replay_state") if is_running() else None
        if self.address is None:
            raise gdb.GdbError("the replay is not running: `run`, or `deja until …`, starts it")
        raw = read(self.address, HEADER.size)
        (magic, version, size, self.watched, self.stop_next, self.stop_nan, self.stop_comm, self.stop_seq,
         self.stop_step, self.reason, self.stopped_thread, self.rank, self.has_step, self.stop_exit, _, self.step, self.operations,
         self.compared, self.different, tensor_count, frame_count, thread_count, end_frame_count, message,
         end_text) = HEADER.unpack(raw)
        if magic != MAGIC or version != VERSION:
            raise gdb.GdbError(f"the replay library speaks another version ({version}) than these commands ({VERSION})")
        self.message, self.end_text = text_of(message), text_of(end_text)
        at = self.address + HEADER.size
        self.tensors = [Tensor(*TENSOR.unpack(read(at + i * TENSOR.size, TENSOR.size)))
                        for i in range(min(tensor_count, TENSORS))]
        at += TENSORS * TENSOR.size
        self.frames = [FRAME.unpack(read(at + i * FRAME.size, FRAME.size)) for i in range(min(frame_count, FRAMES))]
        at += FRAMES * FRAME.size
        self.end_frames = [FRAME.unpack(read(at + i * FRAME.size, FRAME.size))
                           for i in range(min(end_frame_count, FRAMES))]
        at += FRAMES * FRAME.size
        self.threads = [Thread(*THREAD.unpack(read(at + i * THREAD.size, THREAD.size)))
                        for i in range(min(thread_count, THREADS))]
        at += THREADS * THREAD.size
        count = min(int.from_bytes(read(at, 4), "little"), FRAMES)
        at += 8
        self.python_frames = [FRAME.unpack(read(at + i * FRAME.size, FRAME.size)) for i in range(count)]
        if at + FRAMES * FRAME.size - self.address != size:
            raise gdb.GdbError("the replay library's state has another size than these commands expect")

    def write(self, offset, fmt, value):
        gdb.selected_inferior().write_memory(self.address + offset, struct.pack("<" + fmt, value))

    def current(self):
        """What the replay knows about gdb's current thread; None: it has made no call yet."""
        thread = gdb.selected_thread()
        tid = thread.ptid[1] if thread is not None else 0
        return next((t for t in self.threads if t.tid == tid), None)


class Tensor:
    def __init__(self, name, role, dtype, count, live, recorded, nan_count, comparison, _):
        self.name, self.role, self.dtype, self.count = text_of(name), role, dtype, count
        self.live, self.recorded, self.nan_count, self.comparison = live, recorded, nan_count, comparison

    def element_size(self):
        return {6: 2, 9: 2, 10: 1, 11: 1}.get(self.dtype) or struct.calcsize(DTYPES.get(self.dtype, ("", "B"))[1])

    def elements(self, address, first, count):
        size = self.element_size()
        raw = read(address + first * size, count * size)
        return [decode(raw[i * size:(i + 1) * size], self.dtype) for i in range(count)]


class Thread:
    def __init__(self, name, api, tid, comm, seq, parked, stack):
        self.name, self.api, self.tid, self.comm, self.seq = text_of(name), text_of(api), tid, comm, seq
        self.parked, self.stack = parked, stack

    def describe(self):
        if not self.api:
            return "no call yet"
        text = self.api
        if self.seq:
            text += f" #{self.seq}"
        if self.comm:
            text += f" of comm {self.comm - 1}"
        return text + {1: ", which the recorded run entered and never left",
                       2: ", behind the end of its recording"}.get(self.parked, "")


def decode(raw, dtype):
    """One element as text."""
    if dtype == 9:
        return number(struct.unpack("<f", b"\0\0" + raw)[0])
    if dtype in (10, 11):
        return number(decode_fp8(raw[0], *((4, 3) if dtype == 10 else (5, 2))))
    code = DTYPES.get(dtype, ("", "B"))[1]
    value = struct.unpack("<" + code, raw)[0]
    if dtype == 255:
        return f"0x{value:02x}"
    return number(value)


def decode_fp8(byte, exponent_bits, mantissa_bits):
    bias = (1 << (exponent_bits - 1)) - 1
    sign = -1.0 if byte & 0x80 else 1.0
    exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = byte & ((1 << mantissa_bits) - 1)
    full = (1 << exponent_bits) - 1
    if exponent_bits == 4 and exponent == full and mantissa == 7:
        return float("nan")
    if exponent_bits == 5 and exponent == full:
        return sign * float("inf") if mantissa == 0 else float("nan")
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def number(value):
    return f"{value:.9g}" if isinstance(value, float) else str(value)


# ---- frames

def modules():
    """[(path, load address)] of the live process; the load address is what recorded offsets count from."""
    found = {}
    with open(f"/proc/{gdb.selected_inferior().pid}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or not fields[5].startswith("/"):
                continue
            start, offset = int(fields[0].split("-")[0], 16), int(fields[2], 16)
            path = fields[5].rstrip("\n")
            if offset == 0 or path not in found:
                found.setdefault(path, start - offset)
    return found


def is_own(path):
    name = os.path.basename(path or "")
    return name.startswith("libdeja_") or name.startswith("libnccl.so")


def symbolize(address):
    """"function (file:line)" as gdb knows it, or the bare address."""
    name = gdb.execute(f"info symbol {address:#x}", to_string=True).strip()
    name = "" if name.startswith("No symbol") else name.split(" in section")[0]
    sal = gdb.find_pc_line(address)
    if name and sal is not None and sal.symtab is not None:
        return f"{name} ({os.path.basename(sal.symtab.filename)}:{sal.line})"
    return name


def recorded_lines(frames, first_is_pc=False):
    bases = modules()
    by_name = {os.path.basename(path): base for path, base in bases.items()}
    lines = []
    for i, (module, offset) in enumerate(frames):
        path = text_of(read_string(module)) if module else ""
        if is_own(path):
            continue
        if path.startswith(PYTHON):
            lines.append(python_place(path, offset))
            continue
        base = bases.get(path, by_name.get(os.path.basename(path)))
        place = f"{os.path.basename(path)}+{offset:#x}" if path else f"{offset:#x}"
        if base is not None:
            # A return address belongs to the call before it.
            named = symbolize(base + offset - (0 if first_is_pc and i == 0 else 1))
            place = f"{named}  [{place}]" if named else place
        lines.append(place)
    return lines


PYTHON = "python:"  # preload/python_stack.h


def python_place(path, line):
    """"train.py:88 in train_step"."""
    function, _, file = path[len(PYTHON):].partition(":")
    return f"{os.path.basename(file)}:{line} in {function}"


def python_lines(frames):
    paths = ((text_of(read_string(module)) if module else "", line) for module, line in frames)
    return [python_place(path, line) for path, line in paths if path.startswith(PYTHON)]


def read_string(address):
    raw = b""
    while len(raw) < 4096:
        # Never across a page that may not be there.
        size = min(256, 4096 - (address + len(raw)) % 4096)
        raw += read(address + len(raw), size)
        if b"\0" in raw:
            break
    return raw


def objfile_of(frame):
    name = gdb.solib_name(frame.pc())
    return name or gdb.current_progspace().filename or ""


def program_frame():
    """The innermost frame that is not Deja's."""
    frame = gdb.newest_frame()
    while frame is not None and is_own(objfile_of(frame)):
        frame = frame.older()
    return frame


def live_lines():
    lines = []
    frame = gdb.newest_frame()
    innermost = True
    while frame is not None and len(lines) < 64:
        # A function that was inlined has no place on the stack of its own, and the recording does not know it.
        if frame.type() != gdb.INLINE_FRAME:
            if not is_own(objfile_of(frame)):
                pc = frame.pc()
                lines.append(symbolize(pc if innermost else pc - 1) or f"{pc:#x}")
            innermost = False
        try:
            frame = frame.older()
        except gdb.error:
            break
    return lines


# ---- running

class StopPoint(gdb.Breakpoint):
    """Where the library stops the program. Decides with memory alone."""

    pending_conditions = {}
    instance = None

    def __init__(self):
        super().__init__("deja_replay_stop", internal=True)
        self.silent = True

    def stop(self):
        state = State()
        reason = read_reason()
        if reason != READY:
            return True
        state.write(OFFSET_WATCHED, "I", 1)
        apply_conditions(state, StopPoint.pending_conditions)
        StopPoint.pending_conditions = {}
        return False


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


NO_CONDITIONS = {OFFSET_NEXT: ("I", 0), OFFSET_NAN: ("I", 0), OFFSET_COMM: ("I", 0), OFFSET_SEQ: ("Q", 0),
                 OFFSET_STEP: ("Q", 0), OFFSET_EXIT: ("I", 0)}


def go(conditions):
    """Runs, or goes on, until the library stops because of one of `conditions` (or at a divergence or the end)."""
    wanted = dict(NO_CONDITIONS)
    wanted.update(conditions)
    if is_running():
        apply_conditions(State(), wanted)
        gdb.execute("continue")
    else:
        StopPoint.pending_conditions = wanted
        gdb.execute("run")


def on_stop(event):
    """Says why the library stopped, and shows the program's frame instead of Deja's."""
    if not isinstance(event, gdb.BreakpointEvent) or not any(isinstance(b, StopPoint) for b in event.breakpoints):
        if isinstance(event, gdb.SignalEvent) and address_of_symbol("deja_replay_state") is not None:
            where(brief=True)
        return
    state = State()
    print(f"deja: {state.message}")
    if state.has_step:
        print(f"deja: step {state.step}, {state.operations} operations served, {state.compared} digests compared, "
              f"{state.different} different")
    frame = program_frame()
    if frame is not None:
        frame.select()
        gdb.execute("frame")


def where(brief=False):
    try:
        state = State()
    except gdb.GdbError as error:
        if not brief:
            raise
        print(f"deja: {error}")
        return
    current = state.current()
    step = f"step {state.step}, " if state.has_step else ""
    last = f"last call: {current.describe()}" if current is not None else "no call on this thread yet"
    print(f"deja: rank {state.rank}, {step}{last}")
    if brief:
        return
    print(f"      {state.operations} operations served, {state.compared} digests compared, "
          f"{state.different} different")
    print(f"      the recording ends with: {state.end_text}")
    for thread in state.threads:
        if current is None or thread.tid != current.tid:
            print(f"      thread {thread.name} ({thread.tid}): {thread.describe()}")


# ---- commands

class Deja(gdb.Command):
    """Commands for a replay by Deja. `deja help` lists them."""

    def __init__(self):
        super().__init__("deja", gdb.COMMAND_USER, prefix=True)

    def invoke(self, argument, from_tty):
        help_text()


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
    ("until divergence", "go on until the replay differs from the recording"),
    ("until end", "go on to the end of the recording: a crash, a call that never returned, or the exit"),
    ("tensor send|recv|NAME [COUNT]", "elements of the current operation's tensor, or of a deja_tensor snapshot: live "
                                      "beside recorded"),
    ("recorded-stack", "where the recorded run made the current call (or crashed), beside the live stack"),
    ("py-stack", "where the program of Python is, and where the recorded run was; needs no python3-dbg"),
    ("help", "this list"),
]


def help_text(_=None):
    for usage, text in HELP:
        print(f"deja {usage:<30} {text}")
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
        return go({OFFSET_STEP: ("Q", parse_number(rest, "step N") + 1)})
    if kind == "seq":
        conditions = {OFFSET_SEQ: ("Q", parse_number(rest, "seq N [comm C]"))}
        if len(rest) > 1:
            if rest[1] != "comm":
                raise gdb.GdbError("usage: deja until seq N [comm C]")
            conditions[OFFSET_COMM] = ("I", parse_number(rest[2:], "seq N comm C") + 1)
        return go(conditions)
    if kind == "nan":
        return go({OFFSET_NAN: ("I", 1)})
    if kind == "divergence":
        return go({})
    if kind == "end":
        return go({OFFSET_EXIT: ("I", 1)})
    raise gdb.GdbError("usage: deja until step N | seq N [comm C] | nan | divergence | end")


def next_operation(_):
    go({OFFSET_NEXT: ("I", 1)})


def tensor(words):
    state = State()
    if not words:
        raise gdb.GdbError("usage: deja tensor send|recv|NAME [COUNT]")
    roles = {name: role for role, name in ROLES.items() if role != 3}
    found = next((t for t in state.tensors
                  if (t.role == roles[words[0]] if words[0] in roles else t.name == words[0] and t.role == 3)), None)
    if found is None:
        names = ", ".join(ROLES[t.role] if t.role != 3 else t.name for t in state.tensors) or "none"
        raise gdb.GdbError(f"no tensor '{words[0]}' where the replay stopped last; there are: {names}")
    show_tensor(found, int(words[1], 0) if len(words) > 1 else SHOWN)


def show_tensor(found, wanted):
    compared = {1: ", equal", 2: ", DIFFERENT"}.get(found.comparison, "")
    nans = f", {found.nan_count} NaN recorded" if found.nan_count else ""
    label = ROLES[found.role] if found.role != 3 else found.name
    print(f"{label}: {found.count} x {DTYPES.get(found.dtype, (f'type {found.dtype}',))[0]} at {found.live:#x}"
          f"{compared}{nans}")
    count = min(wanted, found.count)
    try:
        live = found.elements(found.live, 0, count)
    except gdb.MemoryError:
        live = ["?"] * count
    recorded = found.elements(found.recorded, 0, count) if found.recorded else None
    # A receive buffer is looked at before it is filled: what comes is what was recorded.
    print(f"{'index':>8} {'live':>16} {'recorded':>16}")
    for i in range(count):
        was = recorded[i] if recorded is not None else "not kept"
        mark = " *" if recorded is not None and recorded[i] != live[i] and found.role != 2 else ""
        print(f"{i:>8} {live[i]:>16} {was:>16}{mark}")
    if recorded is not None and found.role != 2:
        report_first_difference(found)


def report_first_difference(found):
    size = found.element_size()
    total = found.count * size
    chunk = 1 << 20
    for at in range(0, total, chunk):
        n = min(chunk, total - at)
        try:
            live, was = read(found.live + at, n), read(found.recorded + at, n)
        except gdb.MemoryError:
            return
        if live == was:
            continue
        first = next(i for i in range(n) if live[i] != was[i])
        index = (at + first) // size
        print(f"first difference at element {index}: live {found.elements(found.live, index, 1)[0]}, "
              f"recorded {found.elements(found.recorded, index, 1)[0]}")
        return
    print("all elements are equal")


def recorded_stack(_):
    state = State()
    frames, what, is_pc = state.frames, "the current call", False
    if not stopped_by_deja() and state.end_frames:
        frames, what, is_pc = state.end_frames, f"the recorded end ({state.end_text})", True
    elif not frames:
        frames, what, is_pc = state.end_frames, f"the recorded end ({state.end_text})", True
    if not frames:
        print("no stack was recorded here")
    else:
        print(f"recorded, {what}:")
        for i, line in enumerate(recorded_lines(frames, is_pc)):
            print(f"  #{i} {line}")
    print("live:")
    for i, line in enumerate(live_lines()):
        print(f"  #{i} {line}")


def python_stack(_):
    state = State()
    recorded = state.frames or state.end_frames
    for what, frames in ("live", state.python_frames), ("recorded", recorded):
        print(f"{what}:")
        for i, line in enumerate(python_lines(frames) or ["(no frame of Python's)"]):
            print(f"  #{i} {line}")


def stopped_by_deja():
    frame = gdb.newest_frame()
    return frame is not None and frame.name() == "deja_replay_stop"


def install():
    gdb.execute("set breakpoint pending on")
    Deja()
    Sub("where", lambda words: where(), "Where the replay is.")
    Sub("next", next_operation, "Go on to the next collective or point-to-point operation.")
    Sub("until", until, "Go on until: step N | seq N [comm C] | nan | divergence | end.")
    Sub("tensor", tensor, "Show a tensor of the current operation or a snapshot: send|recv|NAME [COUNT].")
    Sub("recorded-stack", recorded_stack, "The recorded stack beside the live one.")
    Sub("py-stack", python_stack, "Python's stack, live and recorded.")
    Sub("help", help_text, "List Deja's commands.")
    gdb.events.new_objfile.connect(on_new_objfile)
    gdb.events.stop.connect(on_stop)
    if gdb.parameter("confirm"):
        print("Deja's commands are here: `deja help` lists them, `run` starts the replay.")


install()
