"""Files that safetensors writes, in a replay.

It gives a file its name by a system call of its own (rustix's renameat). That call does not know that the file is in
the replay's overlay.
"""

import contextlib
import functools
import os

from deja import engine


def install(module):
    if engine.mode() != engine.REPLAYING:
        return
    real = module.serialize_file

    @functools.wraps(real)
    def serialize_file(tensor_dict, filename, metadata=None):
        try:
            return real(tensor_dict, filename, metadata)
        except module.SafetensorError as error:
            with contextlib.suppress(OSError):
                _write(filename, module.serialize(tensor_dict, metadata))
                return None
            raise error

    module.serialize_file = serialize_file


def _write(filename, data):
    """As safetensors does: for the owner alone, and under its name once it is whole."""
    unfinished = f"{os.fspath(filename)}.unfinished"
    with open(unfinished, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(data)
    os.replace(unfinished, filename)
