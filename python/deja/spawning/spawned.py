"""Ranks that a Python program starts by multiprocessing's spawn (torch.multiprocessing.spawn among them).

Such a rank reads what to run from a pipe of its parent's. The parent is no rank and is not replayed. So the pipe's
bytes are recorded, and the rank gets them again when it is replayed without that parent.
"""

import functools
import itertools
import os
import pickletools

from deja import engine

# As a store's answer, which the recording keeps by its key.
FUNCTION = "c10d_store_get"
_KEY = b"multiprocessing: what the parent sent"
_MOST = 64 << 20  # more is the data set of a loader's worker, whose parent is a rank
_taking_arguments = False


def install(module):
    mode = engine.mode()
    if mode == engine.RECORDING:
        module._main = _recording(module._main)
    elif mode == engine.REPLAYING:
        module.spawn_main = _serving(module)


def is_taking_arguments():
    """This process, a spawned one, is unpickling what its parent sent; in a replay, what a parent that is not there
    had sent."""
    return _taking_arguments


class _Copying:
    """A file that is read, and a copy of what was read of it."""

    def __init__(self, file):
        self._file, self.copy = file, bytearray()

    def read(self, size=-1):
        data = self._file.read(size)
        self.copy += data
        return data

    def readline(self):
        data = self._file.readline()
        self.copy += data
        return data


def _recording(main):
    def record(fd, *args):
        """Reads the two pickles that main reads, without making anything of them, and hands them to it."""
        # A replay does not read there.
        with engine.any_order(), os.fdopen(fd, "rb") as pipe:
            source = _Copying(pipe)
            for _ in range(2):
                _skip_pickle(source)
        data = bytes(source.copy)
        if len(data) <= _MOST:
            engine.store_call(FUNCTION, _KEY, lambda: data)
        return _taking(main, file_of(data), *args)

    return record


def _taking(main, *args):
    """main(*args), which unpickles the arguments first and then runs the process."""
    global _taking_arguments
    from multiprocessing import process

    bootstrap = process.BaseProcess._bootstrap

    @functools.wraps(bootstrap)
    def begin(*args, **kwargs):
        global _taking_arguments
        _taking_arguments = False
        return bootstrap(*args, **kwargs)

    process.BaseProcess._bootstrap = begin
    _taking_arguments = True
    return main(*args)


def _skip_pickle(file):
    for opcode, _, _ in pickletools.genops(file):
        if opcode.name == "STOP":
            return


def file_of(data):
    """A descriptor from which `data` can be read."""
    made = os.memfd_create("deja")
    with os.fdopen(os.dup(made), "wb") as file:
        file.write(data)
    os.lseek(made, 0, os.SEEK_SET)
    return made


def _serving(module):
    spawn_main = module.spawn_main

    def serve(pipe_handle, parent_pid=None, tracker_fd=None):
        if _is_connection(pipe_handle):  # the parent is there: it is a process of the rank
            return spawn_main(pipe_handle, parent_pid, tracker_fd)
        data = engine.store_call(FUNCTION, _KEY, None)
        if data is None:
            return spawn_main(pipe_handle, parent_pid, tracker_fd)
        _replace_missing_locks()
        _replace_missing_folder()
        _replace_missing_tracker(tracker_fd)
        _replace_missing_connections()
        living = _silent_descriptor()  # the parent lives for as long as the rank
        raise SystemExit(_taking(module._main, file_of(data), living))

    return serve


def _silent_descriptor():
    """Nothing ever comes there. No pipe: pipes have their names by how many the thread has made."""
    import socket

    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach()


def _is_connection(fd):
    """Not so where a replay has filled the number of a descriptor that the recorded process inherited."""
    import stat

    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _replace_missing_folder():
    """The folder for listeners and shared memory, which the parent made and has told the rank."""
    from multiprocessing import util

    tell = util.get_temp_dir

    @functools.wraps(tell)
    def get_temp_dir():
        folder = tell()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return folder

    util.get_temp_dir = get_temp_dir


def _replace_missing_tracker(fd):
    """What the rank would tell the parent's resource tracker goes nowhere: with none it would start one, which it did
    not."""
    from multiprocessing import resource_tracker

    if fd is not None:
        resource_tracker._resource_tracker._fd = os.open(os.devnull, os.O_WRONLY)


def _replace_missing_connections():
    """Pipes to the parent that the rank was given. What it writes there goes nowhere."""
    from multiprocessing import connection

    rebuild = connection.rebuild_connection

    @functools.wraps(rebuild)
    def rebuild_connection(df, readable, writable):
        made = rebuild(df, readable, writable)
        if not _taking_arguments or (readable and _is_connection(made.fileno())):
            return made
        if readable:  # nothing was read there
            made._handle = _silent_descriptor()
        else:
            made._handle = os.open(os.devnull, os.O_WRONLY)
        return made

    connection.rebuild_connection = rebuild_connection


def _replace_missing_locks():
    """Locks of the parent's that the rank got: they have no other holder now, so that new ones do."""
    from multiprocessing import synchronize

    restore = synchronize.SemLock.__setstate__

    def set_state(self, state):
        try:
            return restore(self, state)
        except FileNotFoundError:
            _, kind, most, name = state[:4]
            self._semlock = _new_lock(kind, most, name)
            self._is_fork_ctx = False
            self._make_methods()

    synchronize.SemLock.__setstate__ = set_state


def _new_lock(kind, most, name):
    import _multiprocessing

    for number in itertools.count():
        try:
            return _multiprocessing.SemLock(kind, min(1, most), most, f"{name}-{number}", True)
        except FileExistsError:
            continue
