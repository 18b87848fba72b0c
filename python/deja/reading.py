"""The library that reads tensors (libdeja_read.so), through ctypes. For deja.trace; needs neither torch nor NumPy."""
import ctypes
import os
from typing import List, Optional, Tuple


class Tensor(ctypes.Structure):
    """deja_read_tensor of read/deja_read.h."""
    _fields_ = [("comm", ctypes.c_uint32), ("dtype", ctypes.c_uint32), ("seq", ctypes.c_uint64), ("count", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("hash", ctypes.c_uint8 * 16), ("is_result", ctypes.c_uint8),
                ("reserved", ctypes.c_uint8 * 7)]


def library_beside(program: str) -> Optional[str]:
    """The library of the installation or build tree that `program` is part of; None: it has none."""
    above = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    for folder in ("lib", "lib/deja", "lib64/deja", "lib/x86_64-linux-gnu/deja"):
        path = os.path.join(above, folder, "libdeja_read.so")
        if os.path.exists(path):
            return path
    return None


class Reader:
    """An open trace directory. Any thread; errors are OSError with the library's words."""

    def __init__(self, library: str, directory: str):
        self._calls = _load(library)
        self._trace = self._calls.deja_read_open(os.fsencode(directory))
        if not self._trace:
            raise OSError(self._why())

    def close(self) -> None:
        if self._trace:
            self._calls.deja_read_close(self._trace)
            self._trace = None

    def ranks(self) -> List[int]:
        count = self._calls.deja_read_ranks(self._trace, None, 0)
        numbers = (ctypes.c_uint32 * count)()
        self._calls.deja_read_ranks(self._trace, numbers, count)
        return list(numbers)

    def tensors(self, rank: int, comm: int = -1, operations: Tuple[int, int] = (-1, -1)) -> List[Tensor]:
        """Inputs and results of the operations from `operations[0]` to `operations[1]`, or of all."""
        room = 1024 if operations[0] >= 0 else 65536
        while True:
            found = (Tensor * room)()
            count = self._calls.deja_read_tensors(self._trace, rank, comm, *operations, found, room)
            if count < 0:
                raise OSError(self._why())
            if count <= room:
                return list(found[:count])
            room = count

    def read_into(self, rank: int, digest: bytes, size: int, address: int) -> None:
        """Decodes the tensor with this digest to `address`, where its `size` bytes have room."""
        if self._calls.deja_read_payload(self._trace, rank, digest, address, size) != 0:
            raise OSError(self._why())

    def _why(self) -> str:
        return self._calls.deja_read_error().decode(errors="replace")


def _load(path: str) -> ctypes.CDLL:
    calls = ctypes.CDLL(path)
    calls.deja_read_error.restype = ctypes.c_char_p
    calls.deja_read_open.restype = ctypes.c_void_p
    calls.deja_read_open.argtypes = [ctypes.c_char_p]
    calls.deja_read_close.restype = None
    calls.deja_read_close.argtypes = [ctypes.c_void_p]
    calls.deja_read_ranks.restype = ctypes.c_int64
    calls.deja_read_ranks.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_int64]
    calls.deja_read_tensors.restype = ctypes.c_int64
    calls.deja_read_tensors.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64,
                                        ctypes.POINTER(Tensor), ctypes.c_int64]
    calls.deja_read_payload.restype = ctypes.c_int
    calls.deja_read_payload.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64]
    return calls
