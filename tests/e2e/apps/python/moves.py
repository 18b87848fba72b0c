"""Makes a folder under another name and moves it to its own when it is complete. usage: moves.py FOLDER"""
import os
import shutil
import sys


def main():
    folder = sys.argv[1]
    final, partial = os.path.join(folder, "final"), os.path.join(folder, "final.partial")
    os.makedirs(partial, exist_ok=True)
    for name in "ab":
        with open(os.path.join(partial, name), "w") as file:
            file.write(name)
    print("before", os.path.isdir(final), sorted(os.listdir(folder)))
    if os.path.isdir(final):
        shutil.rmtree(final)
    shutil.move(partial, final)
    print("after", os.path.isdir(final), os.path.exists(partial), sorted(os.listdir(folder)), sorted(os.listdir(final)))
    with open(os.path.join(final, "a")) as file:
        print(file.read())


if __name__ == "__main__":
    main()
