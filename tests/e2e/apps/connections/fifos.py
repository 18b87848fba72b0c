"""A rank that reads and writes FIFOs.

usage: fifos.py WAY FOLDER; FOLDER has the FIFOs `in` and `out`, whose other ends are a peer's (peers.py fifos), unless
the way makes its own.
"""
import os
import selectors
import stat
import subprocess
import sys
import threading


def read(folder):
    with open(folder + "/in", "rb", buffering=0) as file:
        print(os.path.isfile(folder + "/in"), stat.S_ISFIFO(os.stat(folder + "/in").st_mode),
              stat.S_ISFIFO(os.fstat(file.fileno()).st_mode))
        while data := file.read(3000):
            print(len(data), sum(data))
        print("end", file.read(1))


def lines(folder):
    for _ in range(2):  # who opens it again meets what comes then
        with open(folder + "/in", encoding="latin-1") as file:
            print([line[:30] for line in file])


def talk(folder):
    with open(folder + "/out", "w", encoding="ascii") as out, open(folder + "/in", "rb") as file:
        for i in range(4):
            print(f"question {i}", file=out, flush=True)
            print(file.readline())


def poll(folder):
    file = os.open(folder + "/in", os.O_RDONLY | os.O_NONBLOCK)
    selector = selectors.DefaultSelector()
    selector.register(file, selectors.EVENT_READ)
    received = b""
    while not received.endswith(b"bye\n"):
        for _ in selector.select(timeout=0.01):
            try:
                received += os.read(file, 1000)
            except BlockingIOError:
                pass
    print(len(received), received[-40:])


def both(folder):
    """One descriptor for both directions, as daemons have it that never want to meet the end."""
    file = os.open(folder + "/in", os.O_RDWR)
    received = b""
    while not received.endswith(b"bye\n"):
        received += os.read(file, 1000)
    print(len(received), received[-40:])


def nobody(folder):
    try:
        os.open(folder + "/out", os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        print(error.strerror)


def broken(folder):
    """Its reader goes away."""
    with open(folder + "/out", "wb", buffering=0) as out:
        out.write(b"leave\n")
        with open(folder + "/in", "rb") as file:
            print(file.read())
        try:
            out.write(b"are you there?\n")
        except BrokenPipeError as error:
            print(error.strerror)


def shell(folder):
    script = ('echo ask > out; read first < in; echo "$first" | cut -c1-40; echo ask > out; '
              'test -p in && head -c 9000 < in | wc -c; echo ask > out; cat in | md5sum')
    print(subprocess.run(["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, check=True, text=True).stdout)


def own(folder):
    """Between threads, and between processes: no other process is there."""
    name = folder + "/mine"
    os.mkfifo(name)

    def write():
        with open(name, "w", encoding="ascii") as file:
            file.write(os.urandom(8).hex())

    for start in (lambda: threading.Thread(target=write).start(), lambda: os.fork() or (write(), os._exit(0))):
        start()
        with open(name, encoding="ascii") as file:
            print(file.read())
    print(os.wait()[1], stat.S_ISFIFO(os.stat(name).st_mode))
    os.unlink(name)
    print(os.path.exists(name))


def given(folder):
    """Between its processes, by a name that another program has made. What the child wrote before is there for its
    reader."""
    child = os.fork()
    if child == 0:
        with open(folder + "/note", "w", encoding="ascii") as note:
            note.write(os.urandom(4).hex())
        with open(folder + "/in", "w", encoding="ascii") as file:
            file.write("written")
        os._exit(0)
    with open(folder + "/in", encoding="ascii") as file:
        print(file.read())
    with open(folder + "/note", encoding="ascii") as note:
        print(note.read())
    os.waitpid(child, 0)


def main():
    globals()[sys.argv[1]](sys.argv[2])
    sys.stdout.flush()


if __name__ == "__main__":
    main()
