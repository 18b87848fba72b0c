"""Deja as a wheel has it: the folder of this package is what `cmake --install` fills elsewhere."""

import os
import sys

PREFIX = os.path.dirname(os.path.abspath(__file__))


def main():
    """The command `deja`."""
    command = os.path.join(PREFIX, "bin", "deja")
    try:
        os.execv(command, [command, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"deja: starting {command}: {error.strerror}; install deja-debugger again")
