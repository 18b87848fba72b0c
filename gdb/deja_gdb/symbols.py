"""Symbols of large libraries, which gdb forgets with each program and would read again from their files.

Inferiors that name a file share what gdb has read of it. So inferiors without a process name the same files while gdb
changes from one process to the next. Each one names a file as its executable. It has no symbols of its own: gdb would
look for places of breakpoints in them.
"""
import contextlib
import os

import gdb

from .images import no_notifications

LARGE = 8 << 20  # bytes of a file that takes gdb noticeably longer to read than to name


def large_files():
    """Files of the current inferior whose symbols gdb has."""
    for objfile in gdb.objfiles():
        path = objfile.filename
        try:
            if path and os.path.getsize(path) >= LARGE:
                yield path
        except OSError:
            continue  # the kernel's page, or a file that is gone


def quoted(path):
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextlib.contextmanager
def kept():
    """While gdb leaves one process of the program and takes up another."""
    files = list(large_files())
    if not files:
        yield
        return
    own = gdb.selected_inferior().num
    holders = []
    with no_notifications():
        try:
            for path in files:
                holders.append(new_inferior())
                gdb.execute(f"inferior {holders[-1]}", to_string=True)
                # gdb knows an executable by its path without links.
                command = "exec-file" if os.path.realpath(path) == path else "add-symbol-file"
                gdb.execute(f"{command} {quoted(path)}", to_string=True)
        except gdb.error:  # before gdb 10, or the file is gone: they are read again, then
            pass
        finally:
            gdb.execute(f"inferior {own}", to_string=True)
    try:
        yield
    finally:
        if holders:
            gdb.execute(f"remove-inferiors {' '.join(map(str, holders))}", to_string=True)


def new_inferior():
    before = {inferior.num for inferior in gdb.inferiors()}
    gdb.execute("add-inferior -no-connection", to_string=True)
    return next(inferior.num for inferior in gdb.inferiors() if inferior.num not in before)
