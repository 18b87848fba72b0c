"""The includes respect the layers, and tools/check_layering.py would notice if they did not."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tools" / "check_layering.py"

TREE = {
    "format/tail/tail.cc": '#include "format/tail/tail.h"\n#include <zstd.h>\n',
    "format/trace/bundle_reader.cc": '#include <zip.h>\n#include "common/result.h"\n#include "format/reader/rank_reader.h"\n',
    "cli/commands/main.cc": '#include "format/trace/trace.h"\n#include "cli/output.h"\n#include <fmt/format.h>\n',
    "recorder/core/engine.cc": '#include "preload/engine/engine.h"\n#include "format/log/rank_log.h"\n',
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
        self.assertComplains("preload/cuda/a.cc", '\n#include "recorder/core/x.h"\n', "a.cc:2: preload/cuda/ may not include")
        self.assertComplains("cli/events/a.cc", '#include "preload/engine/engine.h"\n', "cli/events/ may not include preload/engine/")
        self.assertComplains("format/wire/a.cc", '#include "format/log/rank_log.h"\n', "format/wire/ may not include format/log/")

    def test_a_new_room(self):
        self.assertComplains("format/new/a.cc", '#include "format/wire/wire.h"\n', "format/new/ may not include format/wire/wire.h")

    def test_sideways(self):
        self.assertComplains("recorder/core/a.cc", '#include "replayer/core/x.h"\n', "recorder/core/ may not include replayer/core/x.h")

    def test_core_knows_no_room_of_calls(self):
        for engine in ("recorder", "replayer"):
            for room in ("nccl", "mpi", "files", "sockets", "meet", "inputs", "steps", "assembly"):
                self.assertComplains(f"{engine}/core/a.h", f'#include "{engine}/{room}/x.h"\n',
                                     f"{engine}/core/ may not include {engine}/{room}/x.h")

    def test_hooks_know_their_concern(self):
        self.assertComplains("preload/hooks/sockets/a.cc", '#include "preload/calls/file_calls.h"\n',
                             "preload/hooks/sockets/ may not include preload/calls/file_calls.h")

    def test_no_circles(self):
        sys.path.insert(0, str(CHECK.parent))
        import check_layering
        self.assertEqual(check_layering.circle(), [])
        uses = check_layering.MAY_USE["recorder/core"]
        check_layering.MAY_USE["recorder/core"] += " recorder/files"
        self.assertEqual(check_layering.circle(), ["recorder/core", "recorder/files", "recorder/core"])
        check_layering.MAY_USE["recorder/core"] = uses

    def test_reading_side_in_the_process(self):
        self.assertComplains("recorder/core/a.cc", '#include "format/trace/trace.h"\n', "is for the reading side")
        self.assertComplains("format/tail/tail.cc", '#include "format/pack/bundle_writer.h"\n', "is for the reading side")

    def test_libraries_in_the_process(self):
        for header in ("fmt/format.h", "google/protobuf/message.h", "iostream", "stdexcept"):
            self.assertComplains("recorder/a.cc", f"#include <{header}>\n", f"<{header}>")

    def test_cuda(self):
        self.assertComplains("cli/a.cc", "#include <cuda_runtime.h>\n", "CUDA's headers are kept out")

    def test_examples(self):
        """Folders of their own, and what a user's program includes."""
        run = self.check({"examples/a/main.cc": '#include "gpu/b.h"\n#include <cuda.h>\n', "examples/a/gpu/b.h": ""})
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertComplains("examples/a/main.cc", '#include "format/tail/tail.h"\n', "examples/a/ may not include format/tail/tail.h")


if __name__ == "__main__":
    unittest.main(verbosity=2)
