"""The library that reads tensors (libdeja_read.so), through ctypes. For deja.trace; needs neither torch nor NumPy."""
import ctypes
import os
import struct
from typing import List, NamedTuple, Optional, Tuple

# deja_read_tensor of read/deja_read.h.
_TENSOR = struct.Struct("=IIQQQ16s?7x")
# deja_read_statistics.
_STATISTICS = struct.Struct("=QQdddd")

# DEJA_READ_INPUTS, DEJA_READ_RESULTS.
INPUTS, RESULTS = 1, 2
BOTH = INPUTS | RESULTS


class Tensor(NamedTuple):
    """A deja_read_tensor."""
    comm: int
    dtype: int
    seq: int
    count: int
    bytes: int
    hash: bytes
    is_result: bool


def library_beside(program: str) -> Optional[str]:
    """The library of the installation or build tree that `program` is part of; None: it has none."""
    above = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    for folder in ("lib", "lib/deja", "lib64/deja", "lib/x86_64-linux-gnu/deja"):
        path = os.path.join(above, folder, "libdeja_read.so")
        if os.path.exists(path):
            return path
    return None


def address_of(array) -> int:
    """Where the elements of a NumPy array are, which is writable and contiguous."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (BufferError, ValueError, TypeError):  # types of ml_dtypes have no buffers; an empty array has no first byte
        return array.__array_interface__["data"][0]


class _Room:
    """Where a call leaves tensors; grows."""

    def __init__(self):
        self._count = 0
        self._bytes = None

    def of(self, count: int):
        if count > self._count:
            self._count = count
            self._bytes = (ctypes.c_char * (count * _TENSOR.size))()
        return self._bytes


class Reader:
    """An open trace directory. Any thread; errors are OSError with the library's words."""

    def __init__(self, library: str, directory: str):
        self._calls = _load(library)
        self._read_payload = self._calls.deja_read_payload
        self._rooms: List[_Room] = []
        self._trace = ctypes.c_void_p(self._calls.deja_read_open(os.fsencode(directory)))
        if not self._trace:
            raise OSError(self._why())

    def close(self) -> None:
        if self._trace:
            self._calls.deja_read_close(self._trace)
            self._trace = ctypes.c_void_p()

    def ranks(self) -> List[int]:
        count = self._calls.deja_read_ranks(self._trace, None, 0)
        numbers = (ctypes.c_uint32 * count)()
        self._calls.deja_read_ranks(self._trace, numbers, count)
        return list(numbers)

    def tensor_fields(self, rank: int, comm: int = -1, operations: Tuple[int, int] = (-1, -1), which: int = BOTH) -> List[tuple]:
        """The fields of `Tensor` of inputs and results of the operations from `operations[0]` to `operations[1]`, or of
        all. `which`: INPUTS, RESULTS or BOTH."""
        wanted = 65536 if operations[0] < 0 else 3 * (operations[1] - operations[0] + 1)
        try:
            room = self._rooms.pop()  # zeroing a new one takes longer than most calls
        except IndexError:
            room = _Room()
        try:
            while True:
                found = room.of(wanted)
                count = self._calls.deja_read_tensors(self._trace, rank, comm, *operations, which, found, None, wanted)
                if count < 0:
                    raise OSError(self._why())
                if count <= wanted:
                    return list(_TENSOR.iter_unpack(memoryview(found)[:count * _TENSOR.size]))
                wanted = count
        finally:
            self._rooms.append(room)

    def statistics(self, rank: int, comm: int = -1) -> List[Tuple[tuple, tuple]]:
        """The fields of `Tensor`, and those of deja_read_statistics, of all operations."""
        wanted = 65536
        while True:
            found = (ctypes.c_char * (wanted * _TENSOR.size))()
            statistics = (ctypes.c_char * (wanted * _STATISTICS.size))()
            count = self._calls.deja_read_tensors(self._trace, rank, comm, -1, -1, BOTH, found, statistics, wanted)
            if count < 0:
                raise OSError(self._why())
            if count <= wanted:
                return list(zip(_TENSOR.iter_unpack(memoryview(found)[:count * _TENSOR.size]),
                                _STATISTICS.iter_unpack(memoryview(statistics)[:count * _STATISTICS.size])))
            wanted = count

    def read_into(self, rank: int, digest: bytes, size: int, address: int) -> None:
        """Decodes the tensor with this digest to `address`, where its `size` bytes have room."""
        if self._read_payload(self._trace, rank, digest, address, size) != 0:
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
                                        ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    calls.deja_read_payload.restype = ctypes.c_int
    calls.deja_read_payload.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64]
    return calls
