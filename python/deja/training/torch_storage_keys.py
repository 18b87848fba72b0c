"""Pickles of tensors name a storage by "0", and not by its address: what ranks send each other is compared in a replay.

A storage that is pickled by itself stands alone in a stream of its own, where torch names it by its address in memory.
"""

import functools
import struct

from deja import engine


def install(module):
    """module: torch.storage."""
    if engine.mode() == engine.OFF:
        return
    for kind in (module._StorageBase, getattr(module, "TypedStorage", None)):
        reduce = vars(kind).get("__reduce__") if kind is not None else None
        if reduce is not None:
            kind.__reduce__ = _without_address(reduce)


def _without_address(reduce):
    @functools.wraps(reduce)
    def reduced(self):
        made = reduce(self)
        load, arguments = made[:2]
        if len(arguments) != 1 or not isinstance(arguments[0], bytes):
            return made
        return (load, (arguments[0].replace(_pickled(str(self._cdata)), _pickled("0")),), *made[2:])

    return reduced


def _pickled(text):
    """As protocol 2 has it."""
    return b"X" + struct.pack("<I", len(text)) + text.encode()
