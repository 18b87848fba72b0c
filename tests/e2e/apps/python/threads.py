"""Threads of Python that meet at locks of their own: who comes first is in the output."""
import asyncio
import contextlib
import ctypes
import multiprocessing
import os
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed


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


def simple_queues():
    """Several threads put, several get; some find nothing, or wait in vain."""
    items, done, log, lock = queue.SimpleQueue(), queue.SimpleQueue(), [], threading.Lock()

    def body(me):
        if me < 2:
            for i in range(40):
                items.put((me, i))
                if i % 7 == me:
                    time.sleep(0.0003)
            items.put(None)
            return
        empty = 0
        while True:
            try:
                item = items.get(timeout=0.0002) if empty % 3 else items.get(block=empty % 2 == 0)
            except queue.Empty:
                empty += 1
                continue
            if item is None:
                return
            with lock:
                log.append((me, item, empty))
            done.put(item)

    run(4, body)
    print(log, [done.get_nowait() for _ in range(done.qsize())])


class _Slow:
    """Takes its time when a queue's thread pickles it."""

    def __reduce__(self):
        time.sleep(float(os.environ["PAUSE_SECRET"]))  # a trace has no secrets, so a replay may have another one
        return _Slow, ()


def fed_queue():
    """The queue's own thread still pickles one item when the next one is put."""
    items, taken = multiprocessing.Queue(), 0
    for burst in (3, 1) * 16:
        for _ in range(burst):
            items.put(_Slow())
            time.sleep(0.004)
        for _ in range(burst):
            items.get()
            taken += 1
    print(taken)


def pools():
    """Which thread of a pool does what, and what is done first."""
    lock, log, called = threading.Lock(), [], []

    def work(i):
        with lock:
            log.append((threading.current_thread().name.rpartition("_")[2], i))
        sum(range(i % 7 * 300))
        if i % 5 == 0:
            time.sleep(0.0002)
        return i

    def note(future):
        with lock:
            called.append(future.result())

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work, i) for i in range(60)]
        for future in futures:
            future.add_done_callback(note)
        completed = [future.result() for future in as_completed(futures)]
        mapped = list(pool.map(work, range(60, 80)))
    with ThreadPoolExecutor(3) as other:
        more = [future.result() for future in as_completed([other.submit(work, i) for i in range(100, 130)])]
    print(log, called, completed, mapped, more)


def dropped_pools():
    """Pools' threads look for their pool before it is dropped, or after: PAUSE_SECRET, 0 or 0.02, says which pools'."""
    pause, results = float(os.environ["PAUSE_SECRET"]), []
    for i in range(8):
        pool, begin = ThreadPoolExecutor(1), threading.Event()
        before_drop = pause if i % 4 < 2 else 0.02 - pause
        before_look = 0.02 - before_drop
        future = pool.submit(begin.wait)
        if i % 2:
            # The pool lives as long as its future.
            future.add_done_callback(lambda _, pool=pool, wait=before_look: (pool.shutdown(wait=False), time.sleep(wait)))
        else:
            future.add_done_callback(lambda _, wait=before_look: time.sleep(wait))
        begin.set()
        results.append(future.result())
        time.sleep(before_drop)
        del pool, future
    print(results)


def pools_at_the_end():
    """The interpreter ends when pools that are shut down still have a thread, or do not: PAUSE_SECRET, 0 or 0.02."""
    pause = float(os.environ["PAUSE_SECRET"])
    for _ in range(4):
        pool, begin = ThreadPoolExecutor(1), threading.Event()
        future = pool.submit(begin.wait)
        future.add_done_callback(lambda _, pool=pool: (pool.shutdown(wait=False), time.sleep(pause)))
        begin.set()
        print(future.result())
        del pool, future
    time.sleep(0.02 - pause)


def ends_of_commands():
    """Several commands end before the loop's next pass, or between its passes: PAUSE_SECRET, in seconds, says which."""
    pause, log = float(os.environ["PAUSE_SECRET"]), []

    async def run(number):
        command = await asyncio.create_subprocess_exec("sh", "-c", f"exit {number}")
        log.append(await command.wait())

    async def run_all():
        commands = [asyncio.ensure_future(run(number)) for number in range(3)]
        await asyncio.sleep(0.01)
        time.sleep(pause)
        while not all(command.done() for command in commands):
            log.append("pass")
            await asyncio.sleep(0.001)

    asyncio.run(run_all())
    print(*log, sep="\n")


def hold(lock, pause):
    with lock:
        time.sleep(pause)


def dropped_semaphores():
    """The thread that drops a lock's last reference tells the resource tracker; PAUSE_SECRET (seconds) says which."""
    pause, context = float(os.environ["PAUSE_SECRET"]), multiprocessing.get_context("spawn")
    for number in range(3):
        lock = context.Lock()
        thread = threading.Thread(target=hold, args=(lock, pause))
        thread.start()
        time.sleep(0.05)
        del lock
        other = context.Lock()
        thread.join()
        print(number, other.acquire())


def loop_of_asyncio():
    """Threads hand over results between passes of the loop: PAUSE_SECRET, in seconds, says between which."""
    pause, log = float(os.environ["PAUSE_SECRET"]), []

    async def call(number):
        await asyncio.get_running_loop().run_in_executor(None, time.sleep, pause * (number % 3))
        log.append(number)

    async def call_all():
        calls = [asyncio.ensure_future(call(number)) for number in range(6)]
        for _ in range(25):
            log.append("pass")
            time.sleep(0.002)
            await asyncio.sleep(0)
        await asyncio.gather(*calls)

    asyncio.run(call_all())
    print(*log, sep="\n")


@contextlib.contextmanager
def _other_threads():
    """Beside two threads, which want the interpreter's lock if PAUSE_SECRET says so; otherwise they sleep."""
    is_busy, ended = float(os.environ["PAUSE_SECRET"]) > 0, []

    def work():
        while not ended:
            sum(range(2000)) if is_busy else time.sleep(0.001)

    others = [threading.Thread(target=work) for _ in range(2)]
    for other in others:
        other.start()
    yield
    ended.append(True)
    for other in others:
        other.join()


def clock_beside_others():
    with _other_threads():
        for _ in range(200):
            sum(range(20000))
            print(time.monotonic_ns())


def timers_beside_others():
    """Each pass of the loop asks for the time and calls what is due."""
    log = []

    async def call_all():
        loop = asyncio.get_running_loop()
        for number in range(12):
            loop.call_later(0.0007 * number, log.append, number)
        while len(log) < 500 or 11 not in log:
            log.append("pass")
            await asyncio.sleep(0)

    with _other_threads():
        asyncio.run(call_all())
    print(*log, sep="\n")


def _take_in_turn(first_comes):
    """Two threads take a lock, the first one first; if it does not come, it waits for good."""
    lock, log, word = threading.Lock(), [], ctypes.c_int(0)

    def first():
        if not first_comes:
            ctypes.CDLL(None).syscall(202, ctypes.byref(word), 0, 0, None, None, 0)  # FUTEX_WAIT
        with lock:
            log.append(1)

    def second():
        while first_comes and not log:
            time.sleep(0.001)
        with lock:
            log.append(2)

    threading.Thread(target=first, daemon=True).start()
    other = threading.Thread(target=second)
    other.start()
    other.join()
    print("both" if first_comes else log, flush=True)


def both_come():
    _take_in_turn(True)


def one_stays_away():
    _take_in_turn(False)


for name in sys.argv[1:]:
    globals()[name]()
