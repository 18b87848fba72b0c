"""A line on the terminal while the program runs for a command: how far the replay is. It goes away again
(as cli/status_line.h)."""
import contextlib
import os
import signal
import struct
import threading

import gdb

from . import session, state

BEGINS_AFTER_S, EVERY_S = 1.0, 0.25
TERMINAL = 2  # standard error, as cli/status_line.cc
PLACE = struct.Struct("<III QQ")  # of the state, from state.OFFSET_HAS_STEP

_pid = 0  # of the process that runs
_depth = 0
_writer = None


def follow():
    """The program is another process now, or may be."""
    global _pid
    _pid = gdb.selected_inferior().pid


@contextlib.contextmanager
def shown():
    """The line, while the body lets the program run, or until `hide`. Contexts in it add nothing."""
    global _depth, _writer
    _depth += 1
    try:
        if _depth == 1 and has_terminal():
            _writer = Writer()
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            hide()


def hide():
    global _writer
    writer, _writer = _writer, None
    if writer is not None:
        writer.end()


class Writer:
    """The thread that writes the line."""

    def __init__(self):
        self._done = threading.Event()
        self._thread = threading.Thread(target=write_until, args=(self._done,), daemon=True)
        start_without_signals(self._thread)

    def end(self):
        self._done.set()
        self._thread.join()


def start_without_signals(thread):
    """gdb's first thread waits for SIGCHLD and Ctrl-C; another one must not take them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def has_terminal():
    if os.environ.get("TERM", "") in ("", "dumb") or not os.isatty(TERMINAL):
        return False
    with open("/proc/self/cmdline", "rb") as file:  # a front end reads records of MI, on a terminal too
        return not any(word.lstrip(b"-").startswith((b"interpreter", b"i=")) for word in file.read().split(b"\0"))


def write_until(done):
    """gdb's own functions are for its first thread: this one reads the program's memory by itself."""
    shown_text = ""
    wait = BEGINS_AFTER_S
    while not done.wait(wait):
        wait = EVERY_S
        text = place()
        if text not in ("", shown_text):  # what the program writes begins at the left
            os.write(TERMINAL, f"\r{text}\x1b[K\r".encode())
            shown_text = text
    if shown_text:
        os.write(TERMINAL, b"\r\x1b[K")


def place():
    """Empty while the library is not set up."""
    try:
        with open(f"/proc/{_pid}/mem", "rb", buffering=0) as memory:
            raw = os.pread(memory.fileno(), PLACE.size, state.state_address.known + state.OFFSET_HAS_STEP)
    except (OSError, OverflowError):
        return ""
    if len(raw) != PLACE.size:
        return ""
    has_step, _, _, step, operations = PLACE.unpack(raw)
    if has_step and session.the.last_step is not None:
        return f"deja: step {step} of {session.the.last_step}"
    return f"deja: {operations} operations served"
