"""Workers hand batches over by descriptors, as PyTorch's loader does. One of them dies, and its parent hears of it.

    dying_workers.py exits | killed | crashes | asked | outside

asked: the parent asks again and again whether the worker has ended. No signal tells it.
outside: another program kills the worker whose number is printed.
"""
import ctypes
import multiprocessing
import multiprocessing.reduction
import os
import random
import signal
import sys
import time
import uuid
from queue import Empty

AHEAD = 2
LAST = 4  # of the worker that dies


def opened(carried, *what):
    os.close(carried.detach())
    return what


class Batch:
    def __init__(self, *what):
        self.what = what

    def __reduce__(self):
        descriptor = os.open(os.devnull, os.O_RDONLY)
        try:
            return opened, (multiprocessing.reduction.DupFd(descriptor), *self.what)
        finally:
            os.close(descriptor)


def work(number, orders, results, how):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    results.cancel_join_thread()
    while (batch := orders.get()) is not None:
        if number == 1 and batch == LAST and how != "outside":
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "crashes":
                ctypes.string_at(0)
            os._exit(7)
        time.sleep(random.random() / 200)
        results.put(Batch(number, batch))


def end_of(process):
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return found is not None and found.si_status


def main():
    how = sys.argv[1]
    context = multiprocessing.get_context("fork")
    orders = [context.Queue(), context.Queue()]
    results = context.Queue()
    workers = [context.Process(target=work, args=(i, orders[i], results, how), daemon=True) for i in range(2)]
    for worker in workers:
        worker.start()
    if how == "outside":
        print("worker", workers[1].pid, flush=True)

    ended = []

    def told(*_):
        ended.extend(number for number, worker in enumerate(workers) if end_of(worker))

    taken = asked = 0
    if how != "asked":
        signal.signal(signal.SIGCHLD, told)
    for batch in range(AHEAD):
        for queue in orders:
            queue.put(batch)
    while True:
        if how == "asked":
            told()
        time.monotonic()  # a reading on each side says in a replay whether the signal came before the question
        if ended:
            break
        time.monotonic()
        asked += 1
        try:
            number, batch = results.get(timeout=0.2)
        except (OSError, EOFError, Empty) as error:
            print(type(error).__name__, flush=True)
            continue
        print(f"batch {batch} of worker {number}", flush=True)
        orders[number].put(batch + AHEAD)
        taken += 1
        time.sleep(random.random() / 500)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    print(taken, asked, workers[1].exitcode, uuid.uuid4().hex, random.random(), flush=True)
    workers[0].terminate()


if __name__ == "__main__":
    main()
