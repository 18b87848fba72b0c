"""A program starts another one with a listener, a connection and their numbers.

usage: heirs.py PORT FLAG NAME

PORT: of a peer that answers "give". FLAG: where this file is there, one more descriptor is open. NAME: of the
listener. No recorded input differs with FLAG, but the numbers do.
"""
import os
import socket
import subprocess
import sys

CHILD = """
import socket, sys
listener, connection = (socket.socket(fileno=int(fd)) for fd in sys.argv[1:])
client = listener.accept()[0]
print("client says", client.recv(100), flush=True)
client.sendall(b"heard")
connection.sendall(b"give\\n")
lines = connection.makefile("rb")
size = int(lines.readline())
print(size, sum(lines.read(size)), flush=True)
"""


def main():
    port, flag, name = sys.argv[1:]
    spare = os.dup(0) if os.access(flag, os.F_OK) else None
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
    connection = socket.create_connection(("127.0.0.1", int(port)))
    heirs = (listener.fileno(), connection.fileno())
    child = subprocess.Popen([sys.executable, "-c", CHILD, *map(str, heirs)], pass_fds=heirs)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(name)
        client.sendall(b"hello")
        answer = client.recv(100)
    print("child ended with", child.wait(), "and said", answer, flush=True)
    if spare is not None:
        os.close(spare)


main()
