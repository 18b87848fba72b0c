"""debugpy in a replay: an editor debugs the rank over a connection (`deja replay RUN --rank R --debugpy PORT`).

`deja replay` listens at the port and hands the socket down, as DEJA_DEBUGPY: the fence lets a rank make none. A name in
PYTHONPATH brings sitecustomize.py here. Only the rank's own interpreter has the debugger: not what it forks or execs.

What debugpy does is a tool's work, not the program's. Its threads begin inside `engine.library()`, and stay there. The
program's thread is there while it is stopped. So sockets, clocks and random numbers of debugpy are live, and the
program's are served.
"""

import itertools
import os
import sys

from deja import engine
from deja.interpreter import last_exception

MISSING = 131  # for `deja replay`: this Python has no debugpy (cli/replay/debugger/debugpy.h)
_OF_DEBUGPY = ("debugpy", "pydevd", "_pydev", "pydev")
_FIRST_OWN = 620  # of descriptors: the program's own get the numbers that they had

# Functions of pydevd, by module and class, that the program's thread runs while it is stopped, or as it ends.
_WORK = {
    "pydevd": ("PyDB", ("do_wait_suspend", "dispose_and_kill_all_pydevd_threads", "notify_thread_created")),
    "_pydevd_bundle.pydevd_api": ("PyDevdAPI", ("request_disconnect",)),
}


def begin():
    """Before the program's own modules are imported; returns once the editor has set its breakpoints."""
    number = engine.variable("DEJA_DEBUGPY")
    if engine.mode() != engine.REPLAYING or engine.variable("DEJA_CHILD") is not None or number is None:
        return
    engine.as_library(_serve, (int(number),))


def _serve(number):
    os.set_inheritable(number, False)
    environment = dict(os.environ)
    names = _thread_names()
    modules = set(sys.modules)
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # it warns of modules that Python has frozen
    try:
        _import_apart()
    except ImportError as error:
        print(
            f"deja: debugpy: this Python has no module debugpy ({error}); next: {sys.executable} -m pip install debugpy",
            file=sys.stderr,
            flush=True,
        )
        os._exit(MISSING)
    import debugpy
    import pydevd  # debugpy's own

    _take(pydevd, number)
    debugpy.configure(subProcess=False)
    debugpy.listen(("localhost", 0), in_process_debug_adapter=True)
    _mark_work()
    _stop_at_the_last(pydevd)
    debugpy.wait_for_client()
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    _set_thread_names(names)
    _forget_random(modules)
    # The children's own functions of Python have no debugger.
    os.register_at_fork(after_in_child=lambda: engine.as_library(_leave, (pydevd,)))


def _import_apart():
    """Imports debugpy. Its module `random` has a state from live random numbers: the program gets another one."""
    register, os.register_at_fork = os.register_at_fork, lambda **_: None
    try:
        import random  # noqa: F401  where a fork does not seed it
    finally:
        os.register_at_fork = register
    import debugpy.server.api  # noqa: F401


def _forget_random(before):
    """Modules that came with debugpy and have something of `random`: the program imports them, and so `random`, where
    it did without debugpy."""
    if "random" in before:
        return
    new = {name: sys.modules[name] for name in sys.modules.keys() - before if not name.startswith(_OF_DEBUGPY)}
    forgotten = {"random"}
    while True:
        more = {name for name in new.keys() - forgotten if _uses(new[name], forgotten)}
        if not more:
            break
        forgotten |= more
    for name in forgotten:
        parent, _, last = name.rpartition(".")
        if parent not in forgotten and getattr(sys.modules.get(parent), last, None) is new[name]:
            delattr(sys.modules[parent], last)
        del sys.modules[name]


def _uses(module, names):
    """Whether it has imported one of them, or something from one. A package has its own modules as attributes."""
    for value in list(vars(module).values()):
        is_module = isinstance(value, type(sys))
        name = value.__name__ if is_module else getattr(value, "__module__", None)
        if name in names and not (is_module and name.startswith(module.__name__ + ".")):
            return True
    return False


def _thread_names():
    """The counter in names of threads, as "Thread-3"; debugpy's threads go by another one."""
    import threading

    names = threading._counter
    threading._counter = itertools.count(1).__next__
    return names


def _set_thread_names(names):
    import threading

    threading._counter = names


def _take(pydevd, number):
    """pydevd gets the socket that is there."""
    import select
    import socket

    class Listener(socket.socket):
        def accept(self):
            waiting = select.poll()
            waiting.register(self, select.POLLIN)
            waiting.poll()  # while a thread waits in accept(), the kernel holds a number back for it
            connection, address = super().accept()
            moved = _move_up(connection.detach())
            return socket.socket(fileno=moved), address

    pydevd.create_server_socket = lambda host, port: Listener(fileno=number)


def _move_up(descriptor):
    import fcntl

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN)
    os.close(descriptor)
    return moved


def _mark_work():
    """The program's thread is the tool's while it is in them."""
    for module, (owner, names) in _WORK.items():
        holder = getattr(sys.modules[module], owner)
        for name in names:
            setattr(holder, name, _as_library(getattr(holder, name)))


def _stop_at_the_last(pydevd):
    """At the exception that ends the rank, if the editor asks for uncaught ones: pydevd finds it only in programs that
    it has started itself."""
    debugger = pydevd.get_global_debugger()
    stop = debugger.stop_on_unhandled_exception
    stopped = []

    def stop_once(py_db, thread, info, exception):
        if stopped != [exception[1]]:
            stopped[:] = [exception[1]]
            stop(py_db, thread, info, exception)

    def examine(*exception):
        import threading

        thread = threading.current_thread()
        info = debugger.set_additional_thread_info(thread)
        info.is_tracing += 1
        try:
            stop_once(debugger, thread, info, exception)
        finally:
            info.is_tracing -= 1

    debugger.stop_on_unhandled_exception = stop_once
    last_exception.watch(lambda *exception: engine.as_library(examine, exception))


def _as_library(function):
    def call(*arguments, **options):
        with engine.library():
            return function(*arguments, **options)

    return call


def _leave(pydevd):
    sys.settrace(None)
    pydevd.settrace_forked(setup_tracing=False)
