"""Symbols of libraries are read when a stack or a breakpoint needs them.

gdb reads the symbols of each library that a program loads. That takes it 16 s of processor time in a PyTorch job, most
of it for libraries of which no user sees anything. So gdb reads none while the program runs. At a stop it reads those
of libraries with debug information, very large ones left out, and of the library in which the program stands.
`backtrace` and similar commands read those of the libraries on the stack. A breakpoint reads those that may have a
place of it: where it is made, or as the program loads the library.
"""
import os
import re

import gdb

from . import elf, session
from .stacks import is_own
from .state import is_running
from .text import say

LARGE = 64 << 20  # bytes of a file
LINE = re.compile(r"^0x\w+ +0x\w+ +(Yes|No)(?: \(\*\))? +(\S.*)$", re.M)  # of `info sharedlibrary`
NOT_PLAIN = re.compile(r"[^\w/-]")  # may have a meaning in a pattern of `sharedlibrary`
MOST_FRAMES = 200
OF_STACKS = "backtrace", "up", "finish"  # commands of gdb's

_is_late = {}  # by path
_told = set()
_known = []
_chosen = False  # that this session reads late


def is_late(path):
    """It is read when it is needed."""
    if path not in _is_late:
        try:
            _is_late[path] = os.path.getsize(path) >= LARGE or not (elf.has_debug_information(path, debug_folder())
                                                                    or has_script(path))
        except (OSError, ValueError):
            _is_late[path] = False
    return _is_late[path]


def has_script(path):
    """gdb shows types by it, as those of the C++ library."""
    real = os.path.realpath(path)
    folders = "", os.path.join(gdb.parameter("data-directory"), "auto-load")
    return any(os.path.exists(f"{folder}{real}-gdb.py") for folder in folders)


def debug_folder():
    return gdb.parameter("debug-file-directory") or ""


def listed(read):
    """Paths of the program's libraries whose symbols gdb has, or has not."""
    return [path for state, path in LINE.findall(gdb.execute("info sharedlibrary", to_string=True)) if (state == "Yes") == read]


def known():
    """Those that gdb has read; of a program that has ended, when it was seen last."""
    global _known
    if is_running():
        _known = listed(True)
    return _known


def read(paths):
    """gdb reads their symbols, and looks for places of breakpoints in them, once for all."""
    if paths:
        every = r"\|".join("^" + NOT_PLAIN.sub(".", path) + "$" for path in paths)
        gdb.execute(f"sharedlibrary {every}", to_string=True)
        known()


def names(paths):
    return ", ".join(os.path.basename(path) for path in paths)


# ---- while the program loads libraries

class LoadPoint(gdb.Breakpoint):
    """Where a library is loaded, and none of its code has run: libraries with places of the user's breakpoints are read
    there."""

    def __init__(self, address):
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True

    def stop(self):
        read(wanted_for(by_name(), listed(False)))
        return False


_load_point = None


def by_name():
    """Locations of the user's breakpoints that may have more places in a library that comes."""
    return [b.location for b in gdb.breakpoints() if b.number > 0 and b.location and not b.location.startswith("*")]


def wanted_for(locations, paths):
    if not locations:
        return []
    return [path for path in paths if not is_late(path) or any(elf.may_have(path, location, debug_folder()) for location in locations)]


def is_ours_to_choose():
    """And gdb follows one process."""
    return _chosen and gdb.parameter("follow-fork-mode") == "parent" and gdb.parameter("detach-on-fork")


def on_ready():
    """The program's own libraries are loaded, and it has not begun. From here on gdb reads symbols when asked to."""
    if is_ours_to_choose() and (not by_name() or begin_to_watch()):
        gdb.execute("set auto-solib-add off")


def begin_to_watch():
    """Libraries that are loaded from now on are looked at. False: the place is unknown."""
    global _load_point
    address = loader_event() if _load_point is None else None
    if address is not None:
        _load_point = LoadPoint(address)
    return _load_point is not None


def loader_event():
    """Where the dynamic linker stops for gdb, which then looks for libraries that are new. None: unknown."""
    probe = re.search(r" (0x[0-9a-f]+)", gdb.execute("info probes stap rtld reloc_complete", to_string=True))
    if probe is not None:
        return int(probe[1], 16)
    try:
        return int(gdb.parse_and_eval("(unsigned long)&_dl_debug_state"))
    except gdb.error:
        return None


def before_run():
    """The library that stops the program has to be seen. The place of the load point is not there yet."""
    global _load_point
    if _load_point is not None and _load_point.is_valid():
        _load_point.delete()
    _load_point = None
    if _chosen:
        gdb.execute("set auto-solib-add on")


def on_new_objfile(event):
    """Another program in this process (exec) has Deja's library again."""
    if event.new_objfile.filename == gdb.current_progspace().filename:
        before_run()


# ---- at stops

def on_stop():
    """What is on the current thread's stack, and all that is small."""
    if not is_running() or gdb.parameter("auto-solib-add"):
        return
    unread = listed(False)
    if not unread:
        return
    read([path for path in unread if not is_late(path)])
    read_stack(whole=False)
    late = listed(False)
    if late and "late" not in _told:
        _told.add("late")
        say(f"deja: the symbols of {len(late)} libraries are read when a stack or a breakpoint needs them; "
            "`sharedlibrary` reads all")


def read_stack(whole=True):
    """Until no frame is in a library without symbols: the frames above it are guesses. Not whole: up to the program's
    innermost one."""
    while True:
        path = first_unread(set(listed(False)), whole)
        if path is None:
            return
        read([path])


def first_unread(unread, whole):
    frame = gdb.newest_frame() if unread else None
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        path = gdb.solib_name(frame.pc())
        if path in unread:
            return path
        if not whole and not is_own(path):
            break
        try:
            frame = frame.older()
        except gdb.error:
            break
    return None


def after_attach(paths):
    """gdb has taken up a copy of the process in which it had read those."""
    if not gdb.parameter("auto-solib-add"):
        read(paths)


def before_stack():
    """gdb reads what is on the stack of the thread that the user has chosen."""
    if is_running() and not gdb.parameter("auto-solib-add") and gdb.selected_thread() is not None:
        read_stack()


def on_breakpoint(breakpoint):
    """A new one may have places in libraries that have not been read."""
    location = breakpoint.location
    if breakpoint.number <= 0 or not location or not is_running() or gdb.parameter("auto-solib-add"):
        return
    paths = wanted_for([location], listed(False))
    if not begin_to_watch():
        gdb.execute("set auto-solib-add on")
    if paths:
        say(f"deja: breakpoint {breakpoint.number}: the symbols of {names(paths)} are read for it")
        read(paths)
        say(f"deja: breakpoint {breakpoint.number}: {places(breakpoint)}")


def places(breakpoint):
    count = len(getattr(breakpoint, "locations", ()))
    return "no place there" if breakpoint.pending else f"{count or 'its'} place{'' if count == 1 else 's'} found"


def is_front_end():
    """A program talks to gdb. It asks for stacks of any thread, and not by `backtrace`."""
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().decode(errors="replace").split("\0")
    return any(re.match(r"--?i(nterpreter)?(=|$)", word) for word in words)


def install():
    global _chosen
    _chosen = not session.the.child and not is_front_end()
    session.the.run_listeners.append(before_run)
    gdb.events.new_objfile.connect(on_new_objfile)
    gdb.events.breakpoint_created.connect(on_breakpoint)
    for command in OF_STACKS:
        try:
            gdb.execute(f"show user hook-{command}", to_string=True)  # the user's own
        except gdb.error:
            gdb.execute(f"define hook-{command}\npython deja_gdb.libraries.before_stack()\nend")
