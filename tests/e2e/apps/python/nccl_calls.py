"""Calls NCCL by ctypes, from a function that two others call."""
import ctypes

import deja

nccl = ctypes.CDLL("libnccl.so.2")
FLOAT, SUM = 7, 0


def train_step(comm, values):
    again = nccl.ncclAllReduce(values, values, ctypes.c_size_t(len(values)), FLOAT, SUM, comm, None)
    assert again == 0, again


def warm_up(comm, values):
    train_step(comm, values)


def main():
    comm = ctypes.c_void_p()
    assert nccl.ncclCommInitAll(ctypes.byref(comm), 1, None) == 0
    values = (ctypes.c_float * 4)(1, 2, 3, 4)
    for step in deja.steps(range(4)):
        if step == 0:
            warm_up(comm, values)
        else:
            train_step(comm, values)
    assert nccl.ncclCommDestroy(comm) == 0
    print(list(values))


main()
