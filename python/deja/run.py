"""python -m deja.run SCRIPT [ARGUMENT …]: a Python that was started with -I, -E or -S, under Deja all the same.

Such a Python takes no notice of PYTHONPATH, by which Deja reaches the others. Without `deja record` or
`deja replay` the script runs as if this were not there.
"""

import os
import runpy
import sys


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: python -m deja.run SCRIPT [ARGUMENT ...]")
    from deja import engine, on_import

    if engine.mode() != engine.OFF:
        on_import.watch()
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
