"""Waits a little in Python's ways, and prints what the clocks said, to the nanosecond."""
import asyncio
import queue
import random
import select
import threading
import time

WAIT = 0.04


def attempt(what, wait):
    begin = time.monotonic_ns()
    wait()
    print(f"{what:28} {time.monotonic_ns() - begin}")


def until_deadline():
    deadline = time.monotonic() + WAIT
    rounds = 0
    while time.monotonic() < deadline:
        time.sleep(WAIT / 4)
        rounds += 1
    print("rounds", rounds)


async def tasks():
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await asyncio.gather(*(asyncio.sleep(WAIT * (i + 1) / 4) for i in range(4)))
    try:
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), WAIT)
    except asyncio.TimeoutError:
        pass
    print("asyncio", loop.time() - begin)


def main():
    attempt("sleep", lambda: time.sleep(WAIT))
    attempt("event", lambda: threading.Event().wait(WAIT))
    lock = threading.Lock()
    lock.acquire()
    attempt("lock", lambda: lock.acquire(timeout=WAIT))
    attempt("condition", lambda: until_false(threading.Condition()))
    attempt("select", lambda: select.select([], [], [], WAIT))
    poll = select.epoll()
    attempt("epoll", lambda: poll.poll(WAIT))
    attempt("until a deadline", until_deadline)
    try:
        queue.Queue().get(timeout=WAIT)
    except queue.Empty:
        print("empty")
    fired = threading.Event()
    timer = threading.Timer(WAIT, fired.set)
    timer.start()
    print("timer", fired.wait(30))
    timer.join()
    asyncio.run(tasks())
    generator = random.Random(time.time_ns())
    print("seeds", generator.random(), random.Random(time.perf_counter_ns()).random())
    print("used", time.process_time_ns(), time.thread_time_ns())


def until_false(condition):
    with condition:
        condition.wait_for(lambda: False, WAIT)


main()
