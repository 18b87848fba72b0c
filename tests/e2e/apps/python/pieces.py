"""Reads what commands write in pieces, and prints how it came.

usage: pieces.py reads|looks|asyncio|asyncio_pidfd
"""
import asyncio
import os
import selectors
import subprocess
import sys

WRITER = """
import os, random, sys, time
for i in range(6):
    time.sleep(random.choice((0, 0, 0.002)))
    os.write(1, f"{sys.argv[1]}.{i} {random.random()}\\n".encode())
"""


def command(who):
    return [sys.executable, "-c", WRITER, str(who)]


def reads():
    """The sizes of reads that wait."""
    with subprocess.Popen(command(0), stdout=subprocess.PIPE) as child:
        pieces = []
        while piece := os.read(child.stdout.fileno(), 4096):
            pieces.append(piece)
    return pieces


def looks():
    """The sizes, and which came before which, of reads that don't."""
    pieces = []
    with selectors.DefaultSelector() as selector:
        for child in [subprocess.Popen(command(who), stdout=subprocess.PIPE) for who in range(3)]:
            os.set_blocking(child.stdout.fileno(), False)
            selector.register(child.stdout, selectors.EVENT_READ, child)
        while selector.get_map():
            for key, _ in selector.select():
                piece = os.read(key.fd, 64)
                pieces.append(piece)
                if not piece:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    pieces.append(key.data.wait())
    return pieces


async def listen(who, heard):
    child = await asyncio.create_subprocess_exec(*command(who), stdout=asyncio.subprocess.PIPE)
    while piece := await child.stdout.read(4096):
        heard.append(piece)
    heard.append(f"{who} ended with {await child.wait()}")


async def listen_to_all():
    heard = []
    await asyncio.gather(*(listen(who, heard) for who in range(4)))
    return heard


def by_asyncio():
    return asyncio.run(listen_to_all())


def by_asyncio_with_pidfds():
    """As Python 3.12 and newer do by themselves; before, a thread waits for each command."""
    if hasattr(asyncio, "set_child_watcher"):
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    return by_asyncio()


if __name__ == "__main__":
    ways = {"reads": reads, "looks": looks, "asyncio": by_asyncio, "asyncio_pidfd": by_asyncio_with_pidfds}
    print(*ways[sys.argv[1]](), sep="\n")
