"""A handler of a signal raises at any moment, among many exceptions that are caught: how often the program gets it."""
import signal

import torch.distributed  # noqa: F401: caught exceptions are noted from here on

ROUNDS = 40


class Tick(Exception):
    pass


def on_alarm(*_):
    raise Tick


def raising():
    """A function like no other: of the same one few exceptions are noted."""
    found = {}
    exec("def fail():\n    raise ValueError", found)  # noqa: S102
    return found["fail"]


def is_interrupted():
    functions = [raising() for _ in range(1000)]
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        for function in functions * 100:
            try:
                function()
            except ValueError:
                pass
    except Tick:
        return True
    return False


signal.signal(signal.SIGALRM, on_alarm)
print(sum(is_interrupted() for _ in range(ROUNDS)), "of", ROUNDS)
