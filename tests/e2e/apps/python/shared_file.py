"""Processes of multiprocessing (fork) that read one open file together, as they come. usage: shared_file.py FILE

Each says what it has read, in the order of the processes.
"""
import hashlib
import multiprocessing
import os
import sys
import time

FIRST = 3  # pieces, more than a process has in its buffer from before the fork


def take(file, barrier, taken):
    found = hashlib.sha256()
    pieces = 0
    while piece := file.read(128):
        found.update(piece)
        pieces += 1
        if pieces == FIRST:
            barrier.wait()
        time.sleep(os.urandom(1)[0] / 1e6)
    taken.put((pieces, found.hexdigest()[:16], file.tell()))


def main():
    context = multiprocessing.get_context("fork")
    with open(sys.argv[1], "rb", buffering=256) as file:
        print(file.read(100)[:20])
        queues = [context.SimpleQueue() for _ in range(3)]
        barrier = context.Barrier(3)
        processes = [context.Process(target=take, args=(file, barrier, queue)) for queue in queues[1:]]
        for process in processes:
            process.start()
        take(file, barrier, queues[0])
        for queue in queues:
            print(*queue.get())
        for process in processes:
            process.join()


if __name__ == "__main__":
    main()
