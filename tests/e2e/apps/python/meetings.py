"""Processes that meet: what comes out depends on who comes first. Usage: meetings.py WHAT START_METHOD."""
import multiprocessing as mp
import os
import random
import select
import selectors
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Client, Listener, wait
from multiprocessing.managers import BaseManager


def draw(count):
    """As many random bytes as the message before was about: another order is another number of them."""
    return os.urandom(1 + count).hex()


def put(queue, who, count):
    for i in range(count):
        time.sleep(random.random() * 0.003)
        queue.put((who, i))


def get(queue, out, who):
    for item in iter(queue.get, None):
        out.put((who, item, draw(item[0])))


def square(x):
    time.sleep(x % 3 * 0.001)
    return x, os.getpid()


def knock(address, who):
    for i in range(4):
        with Client(address, authkey=b"key") as connection:
            connection.send((who, i))
            connection.recv()


def change(lock, value, who):
    for _ in range(8):
        with lock:
            value.value = (value.value * 31 + who) % 1000003


def processes(context, target, arguments):
    made = [context.Process(target=target, args=args) for args in arguments]
    for process in made:
        process.start()
    return made


def join(made):
    for process in made:
        process.join()


def writers(context):
    queue = context.Queue()
    made = processes(context, put, [(queue, who, 12) for who in range(4)])
    items = [queue.get(timeout=60) for _ in range(48)]
    join(made)
    return [(item, draw(item[0])) for item in items]


def bounded(context):
    queue = context.Queue(3)
    made = processes(context, put, [(queue, who, 8) for who in range(3)])
    items = [(queue.get(), draw(who)) for who in range(24)]
    join(made)
    return items


def readers(context):
    queue, out = context.Queue(), context.SimpleQueue()
    made = processes(context, get, [(queue, out, who) for who in range(3)])
    for i in range(24):
        queue.put((i % 4, i))
    items = [out.get() for _ in range(24)]
    for _ in made:
        queue.put(None)
    join(made)
    return items


def killed(context):
    """Readers that wait when they are killed, one of them with the lock."""
    queue, out = context.Queue(), context.SimpleQueue()
    made = processes(context, get, [(queue, out, who) for who in range(3)])
    for i in range(12):
        queue.put((i % 4, i))
    items = [out.get() for _ in range(12)]
    for process in made:
        process.terminate()
    join(made)
    return items, [process.exitcode for process in made]


def pool(context):
    pids = {}
    with context.Pool(3) as workers:
        return [(x, pids.setdefault(pid, len(pids)), draw(x % 3)) for x, pid in workers.imap_unordered(square, range(24))]


def listener(context):
    items = []
    with Listener(None, "AF_UNIX", backlog=16, authkey=b"key") as listening:
        made = processes(context, knock, [(listening.address, who) for who in range(3)])
        for _ in range(12):
            with listening.accept() as connection:
                who, i = connection.recv()
                items.append((who, i, draw(who)))
                connection.send(0)
        join(made)
    return items


def locks(context):
    lock, value = context.Lock(), context.Value("i", 1, lock=False)
    join(processes(context, change, [(lock, value, who) for who in range(3)]))
    return value.value


def timeouts(context):
    """Waits that end without anything, and looks that find nothing."""
    queue = context.Queue()
    made = processes(context, put, [(queue, who, 6) for who in range(2)])
    items, empty = [], 0
    while len(items) < 12:
        try:
            items.append(queue.get(timeout=0.001) if len(items) % 2 else queue.get_nowait())
        except Exception:  # queue.Empty
            empty += 1
    join(made)
    return items, empty, draw(empty % 7)


def add(shared, counts, lock, who):
    for i in range(6):
        time.sleep(random.random() * 0.003)
        shared.append((who, i))
        with lock:
            counts["sum"] = (counts.get("sum", 0) * 31 + who) % 1000003


def manager(context, clients=3):
    """A server with a thread for each client."""
    with context.Manager() as server:
        shared, counts, lock = server.list(), server.dict(), server.Lock()
        join(processes(context, add, [(shared, counts, lock, who) for who in range(clients)]))
        return [(item, draw(item[0])) for item in shared], counts["sum"]


def manager_of_one(context):
    return manager(context, 1)


class Tally:
    """Without a lock; all meet before they begin."""

    def __init__(self, clients):
        self._value, self._all = 1, threading.Barrier(clients)

    def meet(self):
        self._all.wait()

    def add(self, who):
        value = self._value
        for _ in range(20):
            value = (value * 31 + who) % 1000003
        self._value = value
        return value


class Managed(BaseManager):
    pass


Managed.register("Tally", Tally)


def tell(tally, out, who):
    tally.meet()
    out.put([(who, tally.add(who)) for _ in range(12)])


def managed_class(context):
    """An object of the program's own class, for which a server has a thread for each client."""
    with Managed(ctx=context) as server:
        tally, out = server.Tally(3), context.SimpleQueue()
        made = processes(context, tell, [(tally, out, who) for who in range(3)])
        told = [out.get() for _ in made]
        join(made)
        return told


def receive(queue, out, who):
    for item in iter(queue.get, None):
        out.put((who, item, draw(item % 3)))
        time.sleep(random.random() * 0.002)


def managed_queue(context):
    """Several processes wait for a server's queue, and put what they got into another one."""
    with context.Manager() as server:
        queue, out = server.Queue(), server.Queue()
        made = processes(context, receive, [(queue, out, who) for who in range(3)])
        for i in range(24):
            queue.put(i)
            if i % 4 == 0:
                time.sleep(random.random() * 0.004)
        for _ in made:
            queue.put(None)
        join(made)
        return [out.get() for _ in range(24)]


def executor(context):
    seen = []
    for _ in range(6):
        pids = {}
        with ProcessPoolExecutor(2, mp_context=context) as workers:
            seen += [(x, pids.setdefault(pid, len(pids)), draw(x % 3)) for x, pid in workers.map(square, range(10))]
    return seen


def stages(barrier, condition, event, room, value, order, who):
    event.wait()
    for i in range(4):
        with room:
            time.sleep(random.random() * 0.002)
            with value.get_lock():
                value.value = (value.value * 31 + who) % 1000003
        first = barrier.wait() == 0
        with condition:
            order.put((who, i, first))
            condition.notify_all() if first else condition.wait(0.01)


def synchronization(context):
    barrier, condition, event, room = context.Barrier(3), context.Condition(), context.Event(), context.BoundedSemaphore(2)
    value, order = context.Value("i", 1), context.SimpleQueue()
    made = processes(context, stages, [(barrier, condition, event, room, value, order, who) for who in range(3)])
    event.set()
    items = [order.get() for _ in range(12)]
    join(made)
    return items, value.value


def answer(connection, who):
    for item in iter(connection.recv, None):
        time.sleep(random.random() * 0.002)
        connection.send((who, item, draw(item % 3)))


def pipes(context):
    """The first that is ready of several pipes: by wait, select and epoll."""
    ends = [context.Pipe() for _ in range(3)]
    made = processes(context, answer, [(far, who) for who, (_, far) in enumerate(ends)])
    near = [end for end, _ in ends]
    items = []
    with selectors.EpollSelector() as poller:
        for end in near:
            poller.register(end, selectors.EVENT_READ)
        ways = [lambda: wait(near), lambda: select.select(near, [], [])[0], lambda: [key.fileobj for key, _ in poller.select()]]
        for i in range(12):
            for end in near:
                end.send(i)
            left = 3
            while left:
                ready = ways[i % 3]()
                items.append([end.recv() for end in ready] + [draw(len(ready))])
                left -= len(ready)
    for end in near:
        end.send(None)
    join(made)
    return items


def wakeups(context):
    """The reader looks with the lock without which nothing more is written, as an executor's thread does."""
    reader, writer = context.Pipe(False)
    silent, _writer_of_silent = context.Pipe(False)
    lock = threading.Lock()
    seen = []

    def read():
        while len(seen) < 3:
            wait([reader, silent])
            time.sleep(float(os.environ["PAUSE_SECRET"]))  # a trace has no secrets, so a replay may have another one
            with lock:
                while reader.poll():
                    seen.append((reader.recv(), draw(1)))

    thread = threading.Thread(target=read)
    thread.start()
    for i in range(3):
        time.sleep(0.005)
        with lock:
            writer.send(i)
    thread.join()
    return seen


if __name__ == "__main__":
    print(globals()[sys.argv[1]](mp.get_context(sys.argv[2])))
