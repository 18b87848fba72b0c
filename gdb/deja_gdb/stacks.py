"""Stacks: as they were recorded, and as they are."""
import os

import gdb

from .state import State, read, text_of
from .text import say

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


PYTHON = "python:"  # preload/stack/python_stack.h


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


def recorded_stack(_):
    state = State()
    frames, what, is_pc = state.frames, "the current call", False
    if not stopped_by_deja() and state.end_frames:
        frames, what, is_pc = state.end_frames, f"the recorded end ({state.end_text})", True
    elif not frames:
        frames, what, is_pc = state.end_frames, f"the recorded end ({state.end_text})", True
    if not frames:
        say("no stack was recorded here")
    else:
        say(f"recorded, {what}:")
        for i, line in enumerate(recorded_lines(frames, is_pc)):
            say(f"  #{i} {line}")
    say("live:")
    for i, line in enumerate(live_lines()):
        say(f"  #{i} {line}")


def python_stack(_):
    state = State()
    recorded = state.frames or state.end_frames
    for what, frames in ("live", state.python_frames), ("recorded", recorded):
        say(f"{what}:")
        for i, line in enumerate(python_lines(frames) or ["(no frame of Python's)"]):
            say(f"  #{i} {line}")


def stopped_by_deja():
    frame = gdb.newest_frame()
    return frame is not None and frame.name() == "deja_replay_stop"
