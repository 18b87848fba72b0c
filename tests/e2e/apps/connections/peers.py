"""What programs under test talk to: servers whose answers are random, in random pieces.

usage: peers.py KIND [ARGUMENTS]; prints its port (or path) and serves until it is killed.
"""
import http.server
import os
import random
import socket
import sys
import threading
import time


def pieces(connection, data, size=5000):
    for at in range(0, len(data), size):
        connection.sendall(data[at:at + size])
        time.sleep(random.random() * 0.003)


def serve_store(connection):
    """One line in; a line with a length and as many random bytes out. 'bye' ends, 'reset' resets."""
    with connection:
        stream = connection.makefile("rb")
        for line in stream:
            if line.startswith(b"reset"):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return
            size = random.randrange(1, 20000)
            connection.sendall(b"%d\n" % size)
            pieces(connection, os.urandom(size))
            if line.startswith(b"bye"):
                return


class Http(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        data = os.urandom(random.randrange(1000, 40000))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        pieces(self.wfile_socket(), data)

    def wfile_socket(self):
        self.wfile.flush()
        return self.connection

    def log_message(self, *arguments):
        pass


def listener(address=("127.0.0.1", 0), family=socket.AF_INET):
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(address)
    made.listen(64)
    return made


def say(what):
    print(what, flush=True)


def connected(port):
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.05)


def accept_forever(made):
    while True:
        threading.Thread(target=serve_store, args=(made.accept()[0],), daemon=True).start()


def answer_lines(folder, last):
    """Reads lines from `out`; a random one to `in` for each."""
    with open(folder + "/out", encoding="ascii") as questions, open(folder + "/in", "w", encoding="ascii") as answers:
        for line in questions:
            answers.write(f"{line.strip()}: {os.urandom(6).hex()}\n")
            answers.flush()
            if line == last:
                questions.close()  # before its answers end
                return


def serve_fifos(way, folder):
    if way in ("read", "lines"):
        for _ in range(1 if way == "read" else 2):
            with open(folder + "/in", "wb", buffering=0) as file:
                for _ in range(5):
                    file.write(os.urandom(random.randrange(1, 6000)))
                    time.sleep(random.random() * 0.01)
            time.sleep(0.05)
    elif way in ("poll", "both"):
        for _ in range(3):
            with open(folder + "/in", "wb", buffering=0) as file:
                file.write(os.urandom(random.randrange(1, 2000)))
                time.sleep(random.random() * 0.05)
        with open(folder + "/in", "wb", buffering=0) as file:
            file.write(b"bye\n")
    elif way == "talk":
        answer_lines(folder, "")
    elif way == "broken":
        answer_lines(folder, "leave\n")
    elif way == "shell":
        for i in range(3):  # when it has been asked: who has `in` open by then is the one that wants it
            with open(folder + "/out", encoding="ascii") as questions:
                questions.read()
            with open(folder + "/in", "wb") as file:
                file.write(b"%s\n" % os.urandom(30).hex().encode() if i == 0 else
                           os.urandom(random.randrange(10000, 20000)))


def main():
    kind = sys.argv[1]
    if kind == "store":
        made = listener()
        say(made.getsockname()[1])
        accept_forever(made)
    elif kind == "unix":
        made = listener(sys.argv[2], socket.AF_UNIX)
        say(sys.argv[2])
        accept_forever(made)
    elif kind == "fifos":
        for name in ("in", "out"):
            os.mkfifo(sys.argv[3] + "/" + name)
        say("made")
        serve_fifos(*sys.argv[2:])
    elif kind == "late":  # refuses for a while
        made = socket.socket()
        made.bind(("127.0.0.1", 0))
        say(made.getsockname()[1])
        time.sleep(0.3)
        made.listen(8)
        accept_forever(made)
    elif kind == "http":
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Http)
        say(server.server_address[1])
        server.serve_forever()
    elif kind == "udp":
        made = socket.socket(type=socket.SOCK_DGRAM)
        made.bind(("127.0.0.1", 0))
        say(made.getsockname()[1])
        while True:
            _, sender = made.recvfrom(2000)
            for _ in range(3):
                made.sendto(os.urandom(random.randrange(1, 1200)), sender)
    elif kind == "clients":  # several clients of the server at the port in argv[2], as soon as it is there
        def client(number):
            with connected(int(sys.argv[2])) as connection:
                for turn in range(3):
                    time.sleep(random.random() * 0.02)
                    connection.sendall(b"client %d turn %d %s\n" % (number, turn, os.urandom(4).hex().encode()))
                    connection.recv(1000)
        threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


main()
