"""A child looks for a file and a folder before its parent makes them, and after. usage: looks_first.py FOLDER"""
import multiprocessing
import os
import sys


def look(folder, connection):
    name, made = os.path.join(folder, "file"), os.path.join(folder, "folder")
    before = [os.path.exists(name), os.path.isdir(made)]
    connection.send("has looked")
    connection.recv()
    with open(name) as file:
        print("child:", before, os.path.exists(name), os.path.isdir(made), file.read(), os.listdir(made), flush=True)


def main():
    for method in ("fork", "spawn"):
        folder = os.path.join(sys.argv[1], method)
        os.makedirs(folder)
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context(method).Process(target=look, args=(folder, theirs))
        child.start()
        ours.recv()
        with open(os.path.join(folder, "file"), "w") as file:
            file.write(f"made while a child of {method} ran")
        os.mkdir(os.path.join(folder, "folder"))
        ours.send("go on")
        child.join()


if __name__ == "__main__":
    main()
