"""The includes respect the layers, and tools/check_layering.py would notice if they did not."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tools" / "check_layering.py"

TREE = {
    "format/CMakeLists.txt": "deja_library(deja_format_core INPROCESS SOURCES tail.cc DEPS x)\n"
                             "deja_library(deja_format_read SOURCES bundle.cc tail.cc)\n",
    "format/tail/tail.cc": '#include "format/tail/tail.h"\n#include <zstd.h>\n',
    "format/bundle.cc": '#include <zip.h>\n#include "common/result.h"\n',
    "cli/commands/main.cc": '#include "format/bundle.h"\n#include "api/roles.h"\n#include <fmt/format.h>\n',
    "recorder/engine.cc": '#include "preload/engine/engine.h"\n#include "format/tail/tail.h"\n',
}


class Layering(unittest.TestCase):
    def check(self, extra):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**TREE, **extra}.items():
                path = Path(folder) / name
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_text(text)
            return subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)

    def assertComplains(self, name, text, complaint):
        run = self.check({name: text})
        self.assertEqual(run.returncode, 1)
        self.assertIn(complaint, run.stdout)

    def test_the_tree(self):
        run = subprocess.run([sys.executable, CHECK], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, "every include respects the layers\n"))

    def test_allowed(self):
        self.assertEqual(self.check({}).returncode, 0)

    def test_upwards(self):
        self.assertComplains("common/a.h", '#include "format/tail/tail.h"\n', "common/a.h:1: common/ may not include")
        self.assertComplains("preload/a.cc", '\n#include "recorder/x.h"\n', "preload/a.cc:2: preload/ may not include")
        self.assertComplains("cli/a.cc", '#include "preload/engine/engine.h"\n', "cli/ may not include preload/engine/engine.h")

    def test_sideways(self):
        self.assertComplains("recorder/a.cc", '#include "replayer/x.h"\n', "recorder/ may not include replayer/x.h")

    def test_reading_side_in_the_process(self):
        self.assertComplains("recorder/a.cc", '#include "format/bundle.h"\n', "is for the reading side")
        self.assertComplains("format/tail/tail.cc", '#include "format/bundle.h"\n', "is for the reading side")

    def test_libraries_in_the_process(self):
        for header in ("fmt/format.h", "google/protobuf/message.h", "iostream", "stdexcept"):
            self.assertComplains("recorder/a.cc", f"#include <{header}>\n", f"<{header}>")

    def test_cuda(self):
        self.assertComplains("cli/a.cc", "#include <cuda_runtime.h>\n", "CUDA's headers are kept out")

    def test_examples(self):
        """Folders of their own, and what a user's program includes."""
        run = self.check({"examples/a/main.cc": '#include "gpu/b.h"\n#include <cuda.h>\n', "examples/a/gpu/b.h": ""})
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertComplains("examples/a/main.cc", '#include "format/tail/tail.h"\n', "examples/ may not include format/tail/tail.h")


if __name__ == "__main__":
    unittest.main(verbosity=2)
