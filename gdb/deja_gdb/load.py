"""What `deja replay --gdb` gives to gdb: makes this package importable, and installs its commands."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import deja_gdb.commands  # noqa: E402  pylint: disable=wrong-import-position

deja_gdb.commands.install()
