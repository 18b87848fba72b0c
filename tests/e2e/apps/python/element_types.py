"""Reduces tensors of types that NumPy does not have, or has, over one rank: the results are what went in.

The elements are 1, -2, 0.5 and the largest value or infinity. An argument: the number of the type whose first element
is another one.
"""
import ctypes
import sys

BITS = {
    6: (ctypes.c_uint16, (0x3c00, 0xc000, 0x3800, 0x7c00)),  # float16
    9: (ctypes.c_uint16, (0x3f80, 0xc000, 0x3f00, 0x7f80)),  # bfloat16
    10: (ctypes.c_uint8, (0x38, 0xc0, 0x30, 0x7e)),  # float8e4m3
    11: (ctypes.c_uint8, (0x3c, 0xc0, 0x38, 0x7c)),  # float8e5m2
}


def main():
    nccl = ctypes.CDLL("libnccl.so.2")
    comm = ctypes.c_void_p()
    assert nccl.ncclCommInitAll(ctypes.byref(comm), 1, None) == 0
    for dtype, (kind, bits) in BITS.items():
        values = (kind * 4)(*bits)
        values[0] += str(dtype) in sys.argv[1:]
        result = (kind * 4)()
        assert nccl.ncclAllReduce(values, result, ctypes.c_size_t(4), dtype, 0, comm, None) == 0
    assert nccl.ncclCommDestroy(comm) == 0


main()
