"""Tensors of the current operation and snapshots: live elements beside recorded ones."""
import os
import struct

import gdb

from . import state
from .text import plain, say

DTYPES = {0: ("int8", "b"), 1: ("uint8", "B"), 2: ("int32", "i"), 3: ("uint32", "I"), 4: ("int64", "q"),
          5: ("uint64", "Q"), 6: ("float16", "e"), 7: ("float32", "f"), 8: ("float64", "d"), 9: ("bfloat16", None),
          10: ("float8e4m3", None), 11: ("float8e5m2", None), 255: ("bytes", "B")}
ROLES = {1: "send", 2: "recv", 3: "snapshot"}
SHOWN = 8


class Tensor:
    def __init__(self, name, role, dtype, count, live, recorded, nan_count, comparison, _):
        self.name, self.role, self.dtype, self.count = state.text_of(name), role, dtype, count
        self.live, self.recorded, self.nan_count, self.comparison = live, recorded, nan_count, comparison

    @classmethod
    def of_registered(cls, registered):
        """What it holds now; the recording has it at checkpoints only."""
        tensor = cls(registered.name.encode(), 3, registered.dtype, 0, registered.address, 0, 0, 0, 0)
        tensor.count = registered.size // tensor.element_size()
        return tensor

    def element_size(self):
        return {6: 2, 9: 2, 10: 1, 11: 1}.get(self.dtype) or struct.calcsize(DTYPES.get(self.dtype, ("", "B"))[1])

    def elements(self, address, first, count):
        size = self.element_size()
        raw = state.read(address + first * size, count * size)
        return [decode(raw[i * size:(i + 1) * size], self.dtype) for i in range(count)]


def decode(raw, dtype):
    """One element as text."""
    if dtype == 9:
        return number(struct.unpack("<f", b"\0\0" + raw)[0])
    if dtype in (10, 11):
        return number(decode_fp8(raw[0], *((4, 3) if dtype == 10 else (5, 2))))
    code = DTYPES.get(dtype, ("", "B"))[1]
    value = struct.unpack("<" + code, raw)[0]
    if dtype == 255:
        return f"0x{value:02x}"
    return number(value)


def decode_fp8(byte, exponent_bits, mantissa_bits):
    bias = (1 << (exponent_bits - 1)) - 1
    sign = -1.0 if byte & 0x80 else 1.0
    exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = byte & ((1 << mantissa_bits) - 1)
    full = (1 << exponent_bits) - 1
    if exponent_bits == 4 and exponent == full and mantissa == 7:
        return float("nan")
    if exponent_bits == 5 and exponent == full:
        return sign * float("inf") if mantissa == 0 else float("nan")
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def number(value):
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def tensor(words):
    now = state.State()
    path = None
    if "--save" in words:
        at = words.index("--save")
        path, words = "".join(words[at + 1:at + 2]), words[:at] + words[at + 2:]
    if not words or path == "":
        raise gdb.GdbError("usage: deja tensor send|recv|NAME [COUNT] [--save FILE.npy]")
    roles = {name: role for role, name in ROLES.items() if role != 3}
    found = next((t for t in now.tensors
                  if (t.role == roles[words[0]] if words[0] in roles else t.name == words[0] and t.role == 3)), None)
    if found is None:
        found = next((Tensor.of_registered(r) for r in now.registered if r.name == words[0]), None)
    if found is None:
        names = ", ".join([ROLES[t.role] if t.role != 3 else t.name for t in now.tensors] +
                          [r.name for r in now.registered]) or "none"
        raise gdb.GdbError(f"no tensor '{words[0]}' where the replay stopped last; there are: {plain(names)}")
    if path is not None:
        return save(found, path)
    show_tensor(found, int(words[1], 0) if len(words) > 1 else SHOWN)


# NumPy has no bfloat16 and no 8-bit floats: their bits are saved.
NPY_TYPES = {0: "|i1", 1: "|u1", 2: "<i4", 3: "<u4", 4: "<i8", 5: "<u8", 6: "<f2", 7: "<f4", 8: "<f8", 9: "<u2", 10: "|u1",
             11: "|u1", 255: "|u1"}
NPY_ALIGNMENT = 64


def save(found, path):
    """The live elements as a file of NumPy's, and the recorded ones beside it, where they are kept."""
    files = [(path, found.live)]
    if found.recorded:
        stem, ending = os.path.splitext(path)
        files.append((f"{stem}.recorded{ending}", found.recorded))
    for name, address in files:
        try:
            write_npy(name, found, address)
        except (OSError, gdb.MemoryError) as error:
            raise gdb.GdbError(f"saving {name}: {error}") from None
    what = " (bits)" if found.dtype in (9, 10, 11) else ""
    say(f"deja: {found.count} x {DTYPES.get(found.dtype, ('bytes',))[0]}{what}: " +
        ", ".join(f"{'live' if i == 0 else 'recorded'} in {name}" for i, (name, _) in enumerate(files)))


def write_npy(path, found, address):
    header = repr({"descr": NPY_TYPES.get(found.dtype, "|u1"), "fortran_order": False, "shape": (found.count,)})
    size = 10 + len(header) + 1
    header += " " * (-size % NPY_ALIGNMENT) + "\n"
    total = found.count * found.element_size()
    chunk = 1 << 20
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for at in range(0, total, chunk):
            file.write(state.read(address + at, min(chunk, total - at)))


def show_tensor(found, wanted):
    compared = {1: ", equal", 2: ", DIFFERENT"}.get(found.comparison, "")
    nans = f", {found.nan_count} NaN recorded" if found.nan_count else ""
    label = ROLES[found.role] if found.role != 3 else found.name
    say(f"{label}: {found.count} x {DTYPES.get(found.dtype, (f'type {found.dtype}',))[0]} at {found.live:#x}"
          f"{compared}{nans}")
    count = min(wanted, found.count)
    try:
        live = found.elements(found.live, 0, count)
    except gdb.MemoryError:
        live = ["?"] * count
    recorded = found.elements(found.recorded, 0, count) if found.recorded else None
    # A receive buffer is looked at before it is filled: what comes is what was recorded.
    say(f"{'index':>8} {'live':>16} {'recorded':>16}")
    for i in range(count):
        was = recorded[i] if recorded is not None else "not kept"
        mark = " *" if recorded is not None and recorded[i] != live[i] and found.role != 2 else ""
        say(f"{i:>8} {live[i]:>16} {was:>16}{mark}")
    if recorded is not None and found.role != 2:
        report_first_difference(found)


def report_first_difference(found):
    size = found.element_size()
    total = found.count * size
    chunk = 1 << 20
    for at in range(0, total, chunk):
        n = min(chunk, total - at)
        try:
            live, was = state.read(found.live + at, n), state.read(found.recorded + at, n)
        except gdb.MemoryError:
            return
        if live == was:
            continue
        first = next(i for i in range(n) if live[i] != was[i])
        index = (at + first) // size
        say(f"first difference at element {index}: live {found.elements(found.live, index, 1)[0]}, "
              f"recorded {found.elements(found.recorded, index, 1)[0]}")
        return
    say("all elements are equal")
