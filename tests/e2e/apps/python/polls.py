"""Asks again and again for what another program makes, and says how often. usage: polls.py FOLDER [make]"""
import os
import sys
import time


def polls_until_there(path, exists=os.path.exists):
    polls = 1
    while not exists(path):
        time.sleep(0.01)
        polls += 1
    return polls


def make(path, seconds=None):
    """`seconds`: the time of its last change, as an archive would set it."""
    time.sleep(0.15)
    with open(f"{path}.part", "w") as file:
        file.write("made by another program")
    if seconds is not None:
        os.utime(f"{path}.part", (seconds, seconds))
    os.rename(f"{path}.part", path)


def main():
    asked, folder, first, second, own, old = (os.path.join(sys.argv[1], name)
                                              for name in ("asked", "folder", "first", "second", "own", "old"))
    answer = os.path.join(own, "answer")
    if sys.argv[2:] == ["make"]:
        polls_until_there(asked)
        time.sleep(0.15)
        os.mkdir(folder)
        make(old, seconds=1_700_000_000)
        make(first)
        make(second)
        polls_until_there(own)
        make(answer)
        return
    before = os.path.exists(first), os.path.lexists(second), os.path.isdir(folder)
    try:
        with open(old) as file:
            print(file.read())
    except FileNotFoundError as error:
        print(error)
    with open(asked, "w"):
        pass
    polls = (polls_until_there(folder, os.path.lexists), polls_until_there(first),
             polls_until_there(second, os.path.lexists))
    os.mkdir(own)
    polls += (polls_until_there(answer),)
    for path in first, answer:
        with open(path) as file:
            print(file.read())
    print(before, polls, os.path.getsize(second), os.path.getsize(old), sorted(os.listdir(sys.argv[1])))


if __name__ == "__main__":
    main()
