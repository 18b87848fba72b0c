"""A breakpoint by a function's name stops in the program's functions of that name, not in those of Deja's libraries.

`break Run` has a place in every function called Run, Deja's included, and a condition that names a variable of the
program's has no meaning there. A function that Deja takes in place of a library's, such as getrandom, stays: it is what
the program calls. `enable 1.4` turns a place on again. A breakpoint with places in Deja's libraries alone keeps them.
gdb before 13 shows no places to Python: breakpoints stop in all of them there.
"""
import re

import gdb

from .stacks import is_own

_seen = {}  # by number of a breakpoint: addresses that it had


def is_inside_deja(breakpoint, location):
    """Whether the place is in one of Deja's libraries, and not in a function that the breakpoint names and Deja takes.

    Functions that Deja takes are in C and in no namespace; others of Deja's may be inlined in them.
    """
    if location.address is None or not is_own(gdb.solib_name(location.address)):
        return False
    symbol = gdb.execute(f"info symbol {location.address:#x}", to_string=True).split()[0]
    return symbol not in re.split(r"[^\w:]+", breakpoint.location or "")


def leave_out_own(breakpoint):
    if breakpoint.number <= 0 or breakpoint.type != gdb.BP_BREAKPOINT:
        return
    locations = breakpoint.locations
    seen = _seen.get(breakpoint.number, set())
    # Before the change below, which is a modification, too.
    _seen[breakpoint.number] = {location.address for location in locations}
    own = [location for location in locations if is_inside_deja(breakpoint, location)]
    if len(own) == len(locations):
        return
    for location in own:
        if location.address not in seen and location.enabled:
            location.enabled = False


def install():
    if not hasattr(gdb, "BreakpointLocation"):
        return
    gdb.events.breakpoint_created.connect(leave_out_own)
    gdb.events.breakpoint_modified.connect(leave_out_own)
