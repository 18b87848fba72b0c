"""Clients: each talks to a peer of peers.py in one of the ways that Python has, and prints what it got.

usage: clients.py WAY PORT|PATH
"""
import asyncio
import http.client
import os
import selectors
import socket
import stat
import sys
import threading
import time
import urllib.request
import zlib

WAY, WHERE = sys.argv[1], sys.argv[2]
ADDRESS = ("127.0.0.1", int(WHERE)) if WHERE.isdigit() else WHERE


def show(*words):
    print(*words, flush=True)


def ask(connection, stream, text):
    connection.sendall(text.encode() + b"\n")
    size = int(stream.readline())
    data = stream.read(size)
    show(text, size, zlib.crc32(data))


def talk(connection, name="give"):
    with connection:
        stream = connection.makefile("rb")
        for turn in range(4):
            ask(connection, stream, f"{name} {turn}")
        ask(connection, stream, "bye")
        show("end", stream.read())


def raw():
    connection = socket.create_connection(ADDRESS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    show(connection.getsockname(), connection.getpeername(), connection.getsockopt(socket.IPPROTO_TCP,
                                                                                    socket.TCP_NODELAY) != 0)
    connection.sendall(b"a\n")
    show("peek", connection.recv(3, socket.MSG_PEEK))
    show("all", connection.recv(2, socket.MSG_WAITALL))
    sizes = []
    connection.settimeout(5)
    connection.sendall(b"bye\n")
    connection.shutdown(socket.SHUT_WR)
    while True:
        data = connection.recv(4096)
        if not data:
            break
        sizes.append(len(data))
    show(sizes, connection.recv(10))
    connection.close()


def unix():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(WHERE)
    talk(connection)


def reset():
    connection = socket.create_connection(ADDRESS)
    connection.sendall(b"give\nreset\n")
    total = 0
    try:
        while True:
            data = connection.recv(100000)
            total += len(data)
            if not data:
                break
    except ConnectionResetError as error:
        show("reset after", total, error)
    try:
        connection.sendall(b"more\n")
        time.sleep(0.05)
        connection.sendall(b"more\n")
        show("sent")
    except OSError as error:
        show(error)


def late():
    for attempt in range(200):
        connection = socket.socket()
        error = connection.connect_ex(ADDRESS)
        if error == 0:
            break
        connection.close()
        time.sleep(0.02)
    show("attempts", attempt)
    talk(connection)


def nonblocking():
    connection = socket.socket()
    connection.setblocking(False)
    show(connection.connect_ex(ADDRESS))
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_WRITE)
        selector.select(5)
        show("error", connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        selector.modify(connection, selectors.EVENT_READ)
        connection.send(b"bye\n")
        got = []
        while True:
            selector.select(5)
            try:
                data = connection.recv(3000)
            except BlockingIOError:
                continue
            if not data:
                break
            got.append(data)
    show([len(x) for x in got], zlib.crc32(b"".join(got)))


def udp():
    loose = socket.socket(type=socket.SOCK_DGRAM)
    loose.sendto(b"hello", ADDRESS)
    for _ in range(3):
        data, sender = loose.recvfrom(2000)
        show(len(data), zlib.crc32(data), sender)
    tied = socket.socket(type=socket.SOCK_DGRAM)
    tied.connect(ADDRESS)
    tied.send(b"hello")
    show([len(tied.recv(2000)) for _ in range(3)], tied.getsockname())


def http_client():
    connection = http.client.HTTPConnection(*ADDRESS)
    for turn in range(3):
        connection.request("GET", f"/{turn}")
        answer = connection.getresponse()
        show(answer.status, answer.getheader("Date"), zlib.crc32(answer.read()))
    with urllib.request.urlopen(f"http://127.0.0.1:{WHERE}/x") as answer:
        show(zlib.crc32(answer.read()))


def asynchronous():
    async def one(number):
        reader, writer = await asyncio.open_connection(*ADDRESS)
        for turn in range(3):
            writer.write(f"give {number} {turn}\n".encode())
            await writer.drain()
            size = int(await reader.readline())
            data = await reader.readexactly(size)
            show(number, turn, size, zlib.crc32(data))
        writer.close()

    async def everything():
        await asyncio.gather(*(one(n) for n in range(4)))
    asyncio.run(everything())


def threads():
    lines = []

    def one(number):
        connection = socket.create_connection(ADDRESS)
        stream = connection.makefile("rb")
        for turn in range(3):
            connection.sendall(b"give\n")
            size = int(stream.readline())
            lines.append((number, turn, zlib.crc32(stream.read(size))))
        connection.close()
    running = [threading.Thread(target=one, args=(n,)) for n in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    show(sorted(lines))


def own():
    """A server and its clients in one process."""
    server = socket.create_server(("127.0.0.1", 0))
    got = []

    def serve():
        for _ in range(3):
            connection, _ = server.accept()
            with connection:
                got.append(connection.recv(100))
                connection.sendall(b"thanks for " + got[-1])
    thread = threading.Thread(target=serve)
    thread.start()
    for turn in range(3):
        with socket.create_connection(server.getsockname()) as connection:
            connection.sendall(f"message {turn}".encode())
            show(connection.recv(100))
    thread.join()
    show(got)


def own_unix():
    """The same by a name in the file system, which is looked at and removed."""
    server = socket.socket(socket.AF_UNIX)
    server.bind("own.socket")
    show(stat.S_ISSOCK(os.stat("own.socket").st_mode))
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect("own.socket")
    connection, _ = server.accept()
    client.sendall(b"hello")
    show(connection.recv(100), server.getsockname(), client.getpeername())
    os.unlink("own.socket")
    show(os.path.exists("own.socket"))


def names():
    show(socket.getaddrinfo("localhost", WHERE, type=socket.SOCK_STREAM))
    show(socket.gethostbyname("localhost"), socket.gethostbyname_ex("localhost"))
    show(socket.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICSERV))
    try:
        socket.getaddrinfo("no-such-host.invalid", 80)
    except OSError as error:
        show(error)


{"raw": raw, "unix": unix, "reset": reset, "late": late, "nonblocking": nonblocking, "udp": udp, "http": http_client,
 "asyncio": asynchronous, "threads": threads, "own": own, "own_unix": own_unix, "names": names}[WAY]()
