"""Exceptions of all kinds that a rank catches, one that it does not, and very many at once."""
import gc
import threading

import torch
import torch.distributed as dist


class Item:
    def __getattr__(self, name):
        raise AttributeError(name)


class Three:
    def __init__(self):
        self.left = 3

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


class Refused(ValueError):
    __slots__ = ("why",)


def parse(number):
    if number == 2:
        raise Refused(f"sample {number}")
    return torch.ones(2)


def parsed(number):
    try:
        return parse(number)
    except ValueError:
        return torch.zeros(2)


def opened(path):
    try:
        open(path)
    except OSError:
        return 1


def chain(length):
    """Exceptions of which each was raised while the one before was handled."""
    last = None
    for number in range(length):
        try:
            raise (Refused if number % 2 else KeyError)(number)
        except Exception as error:
            error.__context__ = last
            last = error


def many(rounds):
    deepest = 0

    def deeper(depth):
        nonlocal deepest
        deepest = depth
        deeper(depth + 1)

    for number in range(rounds):
        try:
            raise Refused("one of many")
        except Refused as error:
            kept = [error, gc.get_objects(generation=0)]
        kept.append(kept)
        if number % 100 == 0:
            try:
                deeper(0)
            except RecursionError:
                pass


def fail():
    raise RuntimeError("in a thread")


def main():
    dist.init_process_group("gloo")
    total = torch.zeros(2)
    for number in range(4):
        hasattr(Item(), "size")
        list(Three())
        part = parsed(number)
        dist.all_reduce(part)
        total += part
    opened("/there/is/none")
    threading.excepthook = lambda args: None
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    chain(30000)
    gc.collect()
    gc.set_threshold(5, 2, 2)
    threads = [threading.Thread(target=many, args=(100,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()  # among many other objects Python does not collect the oldest by itself
    print(total.tolist())
    dist.destroy_process_group()


main()
