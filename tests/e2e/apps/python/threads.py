"""Threads of Python that meet at locks of their own: who comes first is in the output."""
import queue
import sys
import threading
import time


def run(count, body):
    threads = [threading.Thread(target=body, args=(me,)) for me in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def locks():
    lock, log = threading.Lock(), []

    def body(me):
        for i in range(40):
            with lock:
                log.append((me, i))
            sum(range(i * 40))
            if i % 7 == me:
                time.sleep(0.0002)

    run(4, body)
    print(log)


def queues():
    items, done, log, lock = queue.Queue(maxsize=3), queue.Queue(), [], threading.Lock()

    def body(me):
        if me < 2:
            for i in range(40):
                items.put((me, i))
            items.put(None)
            return
        while (item := items.get()) is not None:
            with lock:
                log.append((me, item))
            done.put(item)

    run(4, body)
    print(log, [done.get_nowait() for _ in range(done.qsize())])


def conditions():
    condition, log, value = threading.Condition(), [], [0]

    def body(me):
        for i in range(20):
            with condition:
                if me == 0:
                    value[0] += 1
                    condition.notify()
                else:
                    seen = condition.wait(0.0005 * me)
                    log.append((me, seen, value[0]))
            if me == 0:
                time.sleep(0.0004)

    run(4, body)
    print(log)


def semaphores():
    semaphore, lock, log = threading.BoundedSemaphore(2), threading.RLock(), []

    def body(me):
        for i in range(25):
            with semaphore:
                with lock, lock:
                    log.append((me, i))
                if i % 5 == me:
                    time.sleep(0.0001)
            if lock.acquire(blocking=False):
                log.append((me, "tried"))
                lock.release()

    run(4, body)
    print(log)


for name in sys.argv[1:]:
    globals()[name]()
