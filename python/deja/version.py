"""The version of Deja, looked up in the source tree that this file is in. An installation has another file in its
place."""

import os
import re

with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "CMakeLists.txt"), encoding="utf-8") as _project:
    VERSION = re.search(r"project\(deja VERSION ([0-9.]+)", _project.read()).group(1)
