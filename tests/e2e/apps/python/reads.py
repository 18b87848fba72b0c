"""Reads a number from the file that it is given, in its first step, and draws another one."""
import random
import sys

import deja


def load(path):
    with open(path) as file:
        return int(file.read())


def main():
    for _step in deja.steps(range(1)):
        print(load(sys.argv[1]) + random.random())


main()
