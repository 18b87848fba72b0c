"""Makes a folder under another name and moves it to its own when it is complete. usage: moves.py FOLDER

A child makes a file that its parent looks for before and after.
"""
import multiprocessing
import os
import shutil
import sys


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def main():
    folder = sys.argv[1]
    final, partial = os.path.join(folder, "final"), os.path.join(folder, "final.partial")
    os.makedirs(partial, exist_ok=True)
    for name in "ab":
        write(os.path.join(partial, name), name)
    print("before", os.path.isdir(final), sorted(os.listdir(folder)))
    if os.path.isdir(final):
        shutil.rmtree(final)
    shutil.move(partial, final)
    print("after", os.path.isdir(final), os.path.exists(partial), sorted(os.listdir(folder)), sorted(os.listdir(final)))
    with open(os.path.join(final, "a")) as file:
        print(file.read())
    made = os.path.join(folder, "made")
    print("made before", os.path.exists(made))
    child = multiprocessing.get_context("fork").Process(target=write, args=(made, "by the child"))
    child.start()
    child.join()
    with open(made) as file:
        print("made after", os.path.exists(made), file.read())


if __name__ == "__main__":
    main()
