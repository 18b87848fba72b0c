"""How a model is cut up and computed: torch.distributed.pipelining, torch.compile, activation checkpointing."""
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import PYTHON, VERSION, TorchTest  # noqa: E402

HAS_PIPELINING = VERSION and VERSION >= (2, 6)
COMPILES = VERSION and VERSION >= (2, 6) and shutil.which("g++")


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class TorchModels(TorchTest):
    @unittest.skipUnless(HAS_PIPELINING, "torch.distributed.pipelining is newer than this torch")
    def test_a_pipeline_of_two_stages(self):
        """The stages tell each other what shapes they have, by objects."""
        self.assertJobReplays("pipelining", 2, SCHEDULE="Schedule1F1B")
        shown = self.checked(self.deja("show", self.trace_path(), "--rank", "1", "--kind", "enter", "--stacks")).stdout
        self.assertIn("enter c10d_recv", shown)
        self.assertTrue(re.search(r"schedules\.py:\d+ in (\S+\.)?step\n", shown), "no frame of the schedule's")

    @unittest.skipUnless(HAS_PIPELINING, "torch.distributed.pipelining is newer than this torch")
    def test_a_pipeline_of_four_stages(self):
        self.assertJobReplays("pipelining", 4, SCHEDULE="ScheduleGPipe", SHAPES="given")

    @unittest.skipUnless(COMPILES, "torch.compile needs a newer torch, and g++")
    def test_compiled_data_parallel(self):
        self.assertJobReplays("recomputed", 2, MODE="compile", TORCHINDUCTOR_CACHE_DIR=self.dir / "compiled")

    @unittest.skipUnless(COMPILES, "torch.compile needs a newer torch, and g++")
    def test_compiled_fully_sharded(self):
        self.assertJobReplays("recomputed", 2, MODE="compile-fsdp2", TORCHINDUCTOR_CACHE_DIR=self.dir / "compiled")

    def test_activation_checkpointing(self):
        for mode in ("checkpoint", "reentrant"):
            with self.subTest(mode=mode):
                shutil.rmtree(self.trace_path(), ignore_errors=True)
                self.assertJobReplays("recomputed", 2, MODE=mode)


if __name__ == "__main__":
    harness.main()
