"""Children exit while their parent waits. SIGCHLD writes to a descriptor, as asyncio's loop has it.

    wakened_parent.py polls | reaps | reads | sleeps | waits

The parent waits for what it polls, for another child, for what that writes, for a time, or for a lock. A wait that the
signal ends goes on for the rest of its time, so the clock is read once more. The parent prints each reading of its own.
"""
import multiprocessing
import os
import selectors
import signal
import socket
import sys
import time

CHILDREN = 8
BETWEEN = 0.02
LONG = 2 * BETWEEN * CHILDREN


def start(seconds, descriptor=None):
    child = os.fork()
    if child == 0:
        time.sleep(seconds)
        if descriptor is not None:
            os.write(descriptor, b"later")
        os._exit(0)
    return child


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main():
    how = sys.argv[1]
    taken = multiprocessing.get_context("fork").Lock()
    taken.acquire()
    out, into = os.pipe()
    wakes, wakened = socket.socketpair()
    for end in (wakes, wakened):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: say("handler at", time.monotonic_ns()))
    signal.set_wakeup_fd(wakened.fileno())
    selector = selectors.DefaultSelector()
    selector.register(wakes, selectors.EVENT_READ)
    last = start(LONG, into)
    for number in range(CHILDREN):
        start(BETWEEN * (1 + number))

    def wait():
        if how == "polls":
            found = selector.select(BETWEEN)
            return wakes.recv(64) if found else None
        if how == "reaps":
            return os.waitpid(last, 0)[1]
        if how == "reads":
            return os.read(out, 8)
        if how == "sleeps":
            return time.sleep(BETWEEN)
        return taken.acquire(timeout=BETWEEN)

    for _ in range(1 if how in ("reaps", "reads") else CHILDREN):
        say(wait(), "at", time.monotonic_ns())
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ended = 0
    try:
        while os.wait():
            ended += 1
    except ChildProcessError:
        say("ended:", ended)


if __name__ == "__main__":
    main()
