"""The notebooks of docs/ print what stands in them."""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from torch_jobs import PYTHON, VERSION  # noqa: E402


@unittest.skipUnless(VERSION, f"{PYTHON} has no torch with gloo")
class Notebooks(harness.DejaTest):
    def test_a_recorded_rank(self):
        paths = {"PATH": f"{harness.BUILD / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": harness.ROOT / "python"}
        run = self.command([PYTHON, harness.ROOT / "tools" / "run_notebook.py",
                            harness.ROOT / "docs" / "notebooks" / "trace_pg.ipynb"], env=paths, timeout=300)
        self.checked(run)
        self.assertIn("trace_pg.ipynb: prints what it says", run.stdout)


if __name__ == "__main__":
    harness.main()
