"""Servers: each waits for the clients of peers.py in one of the ways that Python has, and prints their messages in
order of arrival.

usage: servers.py WAY PORT
"""
import asyncio
import selectors
import socket
import sys
import threading

WAY, PORT = sys.argv[1], int(sys.argv[2])
CLIENTS = 4


def show(*words):
    print(*words, flush=True)


def selecting():
    listener = socket.create_server(("127.0.0.1", PORT))
    listener.setblocking(False)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    open_now, seen = 0, 0
    while seen < CLIENTS or open_now:
        for key, _ in selector.select():
            if key.fileobj is listener:
                connection, address = listener.accept()
                show("accepted", address)
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ)
                open_now, seen = open_now + 1, seen + 1
                continue
            data = key.fileobj.recv(1000)
            show(key.fileobj.getpeername()[1] if data else "end", data)
            if data:
                key.fileobj.send(b"ok")
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()
                open_now -= 1


def threads():
    listener = socket.create_server(("127.0.0.1", PORT))
    lines = []

    def serve(connection, number):
        with connection:
            while data := connection.recv(1000):
                lines.append((number, data))
                connection.sendall(b"ok")
    running = []
    for number in range(CLIENTS):
        thread = threading.Thread(target=serve, args=(listener.accept()[0], number))
        thread.start()
        running.append(thread)
    for thread in running:
        thread.join()
    for line in sorted(lines, key=lambda line: line[0]):
        show(*line)


def asynchronous():
    async def everything():
        left = CLIENTS
        done = asyncio.Event()

        async def serve(reader, writer):
            nonlocal left
            while data := await reader.readline():
                show(data)
                writer.write(b"ok")
                await writer.drain()
            writer.close()
            left -= 1
            if left == 0:
                done.set()
        server = await asyncio.start_server(serve, "127.0.0.1", PORT)
        await done.wait()
        server.close()
    asyncio.run(everything())


{"select": selecting, "threads": threads, "asyncio": asynchronous}[WAY]()
