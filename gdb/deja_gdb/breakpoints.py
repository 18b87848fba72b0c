"""A breakpoint by a function's name stops in the program's functions of that name, not in those of Deja's libraries.

`break Run` has a place in every function called Run, Deja's included, and a condition that names a variable of the
program's has no meaning there. `enable 1.4` turns such a place on again. A breakpoint with places in Deja's libraries
alone keeps them. gdb before 13 shows no places to Python: breakpoints stop in all of them there.
"""
import gdb

from .stacks import is_own

_seen = {}  # by number of a breakpoint: addresses that it had


def is_deja(location):
    return location.address is not None and is_own(gdb.solib_name(location.address))


def leave_out_own(breakpoint):
    if breakpoint.number <= 0 or breakpoint.type != gdb.BP_BREAKPOINT:
        return
    locations = breakpoint.locations
    seen = _seen.get(breakpoint.number, set())
    # Before the change below, which is a modification, too.
    _seen[breakpoint.number] = {location.address for location in locations}
    own = [location for location in locations if is_deja(location)]
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
