"""Processes that the program has started: they end when gdb kills it to go back. They would wait for good, since
everything that they ask of their parent is served."""
import os
import signal
from pathlib import Path

import gdb

from . import session


def end():
    """Those of the process that gdb has as its program, which is stopped. Images are gdb's children, and stay."""
    for pid in descendants(gdb.selected_inferior().pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def descendants(pid):
    """Process ids, parents before their children; 0: there is no process."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*") if pid else ():
        try:
            children = [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
        except OSError:  # the thread has ended
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def install():
    session.the.run_listeners.append(end)
    gdb.execute("define hook-kill\npython deja_gdb.children.end()\nend")
