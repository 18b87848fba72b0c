"""Symbols of large libraries, which gdb forgets with each program and would read again from their files.

A second inferior without a process names the same files while gdb changes from one process to the next. Inferiors that
name a file share what gdb has read of it.
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
    before = {inferior.num for inferior in gdb.inferiors()}
    try:
        gdb.execute("add-inferior -no-connection", to_string=True)
    except gdb.error:  # before gdb 10: they are read again, then
        yield
        return
    holder = next(inferior.num for inferior in gdb.inferiors() if inferior.num not in before)
    with no_notifications():
        gdb.execute(f"inferior {holder}", to_string=True)
        try:
            for path in files:
                try:
                    gdb.execute(f"add-symbol-file {quoted(path)}", to_string=True)
                except gdb.error:
                    continue  # it is read again, then
        finally:
            gdb.execute(f"inferior {own}", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"remove-inferiors {holder}", to_string=True)
