"""A rank whose processes talk over Unix sockets: workers connect to a listener of the parent, and hand it descriptors;
the parent asks a manager's process. What each draws is random; the parent prints it in the order of the workers."""
import array
import multiprocessing
import os
import random
import socket
import sys
import tempfile


def worker(path, number):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        file = os.memfd_create("drawn")
        os.write(file, b"%d %s" % (number, os.urandom(4).hex().encode()))
        connection.sendmsg([b"%d" % number], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
        connection.recv(1)


def take(listener):
    connection, _ = listener.accept()
    with connection:
        _, files, _, _ = socket.recv_fds(connection, 16, 1)
        text = os.pread(files[0], 100, 0).decode()
        os.close(files[0])
        connection.send(b"!")
    return text


def main():
    context = multiprocessing.get_context("fork")
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "listener" + "-long" * 10)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        workers = [context.Process(target=worker, args=(path, n)) for n in range(3)]
        for process in workers:
            process.start()
        print(*sorted(take(listener) for _ in workers), sep="\n")
        for process in workers:
            process.join()
    os.remove(path)
    os.rmdir(folder)

    with context.Manager() as manager:
        shared = manager.dict()
        process = context.Process(target=shared.update, args=({"drawn": random.random()},))
        process.start()
        process.join()
        shared["more"] = os.urandom(4).hex()
        print(sorted(dict(shared).items()))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
