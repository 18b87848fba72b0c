"""[manager|thresholds]: objects in reference cycles, whose finalizers take numbers for which another process asks, too.

With "manager" a manager's process has the numbers. With "thresholds" the collector runs more often than usual. One
thread makes such objects, two make lists. When Python's collector runs, and on which thread, is how the interpreter
lets them run. It does not run around the moment in which such an object is given up.
"""

import gc
import multiprocessing
import os
import sys
import threading
import time

OBJECTS = 12
STEPS = 24


class Numbers:
    """Each number once, whichever process asks."""

    def __init__(self):
        self._next = multiprocessing.Value("i", 0)

    def take(self):
        with self._next.get_lock():
            self._next.value += 1
            return self._next.value


class Requests:
    """The same, of a manager's process."""

    def __init__(self, manager):
        self._taken = manager.list()

    def take(self):
        self._taken.append(None)
        return len(self._taken)


class Owner:
    def __init__(self, number, numbers, told):
        self.me = self
        self.number, self.numbers, self.told = number, numbers, told

    def __del__(self):
        self.told.append(f"{self.number}:{self.numbers.take()}:{threading.current_thread().name}")


def give_up_objects(steps, numbers, told):
    for i in range(OBJECTS):
        gc.disable()
        steps.take()
        Owner(i, numbers, told)
        steps.take()
        gc.enable()
        make_lists(steps)


def make_lists(steps, times=STEPS):
    kept = []
    for _ in range(times):
        kept.extend([] for _ in range(97))
        steps.take()


def ask(numbers, write):
    taken = []
    for _ in range(8 * OBJECTS):
        taken.append(str(numbers.take()))
        time.sleep(0.001)
    os.write(write, " ".join(taken).encode())


def main(way=""):
    if way == "thresholds":
        gc.set_threshold(300, 5, 5)
    steps, numbers = Numbers(), Numbers()
    manager = multiprocessing.Manager() if way == "manager" else None
    owned = Requests(manager) if manager else numbers
    read, write = os.pipe()
    other = multiprocessing.Process(target=ask, args=(numbers, write))
    thread = threading.Thread(target=make_lists, args=(steps, OBJECTS * STEPS), name="second")
    told = []
    other.start()
    thread.start()
    give_up_objects(steps, owned, told)
    thread.join()
    gc.collect()
    other.join()
    if manager:
        manager.shutdown()
    print("asked", os.read(read, 1 << 16).decode())
    print("finalized", *told)
    print("thresholds", *gc.get_threshold())


if __name__ == "__main__":
    main(*sys.argv[1:])
