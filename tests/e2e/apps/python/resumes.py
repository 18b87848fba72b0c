"""Looks for a checkpoint in the ways of trainers and begins at the first step without one. usage: resumes.py FOLDER"""
import os
import sys
from pathlib import Path


def opened(path, mode):
    try:
        with open(path, mode) as file:
            return file.read()
    except OSError as error:
        return error.strerror


def listed(folder):
    try:
        return sorted(os.listdir(folder)), [path.name for path in Path(folder).iterdir()]
    except OSError as error:
        return error.strerror


def main():
    folder = sys.argv[1]
    newest = os.path.join(folder, "newest")
    for _ in range(2):
        print(os.path.exists(folder), os.path.isdir(folder), os.path.lexists(newest), os.access(newest, os.R_OK))
        print(opened(newest, "r"), opened(newest, "r+"), listed(folder), sorted(Path(folder).glob("*")))
    own = os.path.join(sys.argv[1] + ".own", "newest")
    print(os.path.exists(own), os.path.exists(os.path.dirname(own)))
    os.makedirs(os.path.dirname(own))
    print(os.path.exists(own), opened(own, "w+"), opened(own, "r+"), os.path.exists(own), listed(os.path.dirname(own)))
    os.remove(own)
    print(os.path.exists(own), listed(os.path.dirname(own)))


if __name__ == "__main__":
    main()
