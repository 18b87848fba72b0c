"""Interpreters within one process, each on a thread: exceptions that each of them catches."""
import sys
import threading

import torch.distributed  # noqa: F401: caught exceptions are noted from here on

if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters

SCRIPT = """
import queue, sys, threading

def catches(number):
    try:
        raise ValueError(f"in an interpreter: {number}")
    except ValueError as error:
        last = error
    try:
        {}["none"]
    except KeyError:
        return number

found = queue.SimpleQueue()
thread = threading.Thread(target=lambda: [found.put(catches(number)) for number in range(2000)])
thread.start()
total = sum(found.get() for _ in range(2000))
thread.join()
if total != 1999000:
    raise RuntimeError(total)
if [name for name in sys.modules if name.split(".")[0] == "deja"]:
    raise RuntimeError("Deja is here, too")
"""


def work():
    # Isolated ones have no threads before 3.12, and a lock of their own since then.
    one = interpreters.create(**({"isolated": False} if sys.version_info < (3, 12) else {}))
    try:
        wrong = interpreters.run_string(one, SCRIPT)
    except RuntimeError as error:
        wrong = error
    if wrong is not None:
        print(getattr(wrong, "formatted", wrong), flush=True)
    interpreters.destroy(one)


def main():
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(2000):
        try:
            raise OSError(f"in the first one: {number}")
        except OSError:
            pass
    for thread in threads:
        thread.join()
    print("done")


main()
