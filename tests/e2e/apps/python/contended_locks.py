"""Threads contend for Python's locks, which read the clock for each attempt, and print times of their own.

    contended_locks.py [LOOPS [THREADS]]

How often a lock is tried depends on other threads. The first thread prints as it goes on, each other one in its turn.
"""
import sys
import threading
import time

TURNS = 90


def main():
    loops, most = (*map(int, sys.argv[1:]), *(3000, 3)[len(sys.argv) - 1:])
    turns = threading.Condition()
    times = []

    def work(number):
        begun = time.monotonic_ns()
        sum(range(loops * number))
        with turns:
            turns.wait_for(lambda: len(times) == number)
            times.append((begun, time.monotonic_ns()))
            turns.notify_all()

    for turn in range(max(TURNS // most, 2)):
        times.clear()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(most)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(turn, time.monotonic_ns(), *times)


if __name__ == "__main__":
    main()
