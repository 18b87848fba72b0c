"""A child exits while its parent does something else; the handler of SIGCHLD raises where the parent is by then.

    interrupted_parent.py prints | starts | computes | reaps | waits | sleeps | ends

The parent prints; starts programs (vfork), too; computes without a call that leaves the interpreter; waits for another
child, which ends when it has read something; tries to get a lock and computes in between; sleeps, while other threads
want the interpreter's lock; or has ended by an exception whose text Deja notes (ends).
"""
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

CHILD_LIVES = 0.1
MOST = 1 << 30


def say(text):
    sum(range(20000))
    os.write(1, f"{text}\n".encode())


class Died(Exception):
    pass


def start_child_that_reads():
    child = os.fork()
    if child == 0:
        os.read(0, 1)
        os._exit(0)
    return child


class Slow(Exception):
    """Prints as long as its text is made, until the child has died."""

    def __str__(self):
        global told
        for number in range(0 if told else MOST):
            told = True
            say(f"text {number}")
        return "slow"


told = False


def main():
    how = sys.argv[1]
    if how == "ends":
        import deja

        deja.step(0)
    lock = multiprocessing.get_context("fork").Lock()
    lock.acquire()
    asks, asked = os.pipe()
    child = os.fork()
    if child == 0:
        if how == "sleeps":
            os.read(asks, 1)
        time.sleep(CHILD_LIVES)
        os._exit(7)
    lives = True

    def ended(*_):
        nonlocal lives
        found, status = os.waitpid(child, os.WNOHANG) if lives else (0, 0)
        if found:
            lives = False
            raise Died(os.waitstatus_to_exitcode(status))

    other = start_child_that_reads() if how == "reaps" else 0
    signal.signal(signal.SIGCHLD, ended)
    number = 0
    if how == "sleeps":
        for _ in range(2):
            threading.Thread(target=lambda: sum(iter(lambda: lives, False)), daemon=True).start()
        os.write(asked, b"?")
    try:
        while number < MOST:
            if how == "starts":
                # What the child does before it is another program is not the parent's.
                subprocess.run(["true"], check=True)
            if how in ("prints", "starts"):
                say(f"line {number}")
            if how == "reaps":
                os.waitpid(other, 0)
                say("reaped")
            if how == "waits":
                lock.acquire(timeout=0.001)
                sum(range(10000))
            if how == "sleeps":
                time.sleep(0.001)
            if how == "ends":
                break
            number += 1
    except Died as died:
        say(f"died with {died} after {number if how != 'computes' else 'some'}")
    if how == "ends":
        raise Slow
    if how == "reaps":
        os.waitpid(other, 0)
    lock.release()


if __name__ == "__main__":
    main()
