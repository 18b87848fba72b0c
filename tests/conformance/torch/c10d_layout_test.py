"""python/deja/engine.py, preload/hooks/python/ and include/deja.h have the same structures, and every
operation that Python names has a row in c10d.def. Usage: c10d_layout_test.py PROGRAM, which prints C's."""
import ctypes
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True
from deja import engine  # noqa: E402

PROGRAM = sys.argv.pop(1)


class Layout(unittest.TestCase):
    def test_structures(self):
        printed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout
        lines = ["Piece 16 data=0 bytes=8"]  # two words, as torch_dense.py writes them
        for kind in (engine.StoreCall, engine.OptimizerUpdate):
            fields = [f"{name}={getattr(kind, name).offset}" for name, _ in kind._fields_ if name != "padding"]
            lines.append(" ".join([kind.__name__, str(ctypes.sizeof(kind)), *fields]))
        self.assertEqual(printed.splitlines(), lines)

    def test_operations(self):
        rows = set(re.findall(r"DEJA_FN\(\d+, int, c10d_(\w+)", (ROOT / "api/tables/c10d.def").read_text()))
        text = (ROOT / "python/deja/distributed/torch_operations.py").read_text()
        others = dict(re.findall(r"\"(\w+)\": \"c10d_(\w+)\"", text))  # that stand in a trace by another name
        done = re.findall(r"_do\(\s*\"(\w+)\"", text)
        named = {others.get(name, name.lstrip("_")) for name in done} | {"new_group", "work"}
        calls = re.findall(r"self\._call\(\s*\"(\w+)\"", (ROOT / "python/deja/distributed/torch_stores.py").read_text())
        self.assertEqual(rows, named | {"store_" + name for name in calls})


if __name__ == "__main__":
    unittest.main(verbosity=2)
