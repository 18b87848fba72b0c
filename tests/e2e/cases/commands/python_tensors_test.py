"""Tensors in Python (deja.trace): each element type as NumPy's and torch's, with and without ml_dtypes.

Each Python that there is reads with what it has: this one, and DEJA_TORCH_PYTHON.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import harness  # noqa: E402

APP = harness.ROOT / "tests" / "e2e" / "apps" / "python" / "element_types.py"
PYTHONS = sorted({sys.executable, os.environ.get("DEJA_TORCH_PYTHON", "/usr/bin/python3")})

# By the order of the operations: name, its type in ml_dtypes and torch, values, bits.
TYPES = (
    ("float16", "float16", [1, -2, 0.5, float("inf")], [0x3c00, 0xc000, 0x3800, 0x7c00]),
    ("bfloat16", "bfloat16", [1, -2, 0.5, float("inf")], [0x3f80, 0xc000, 0x3f00, 0x7f80]),
    ("float8e4m3", "float8_e4m3fn", [1, -2, 0.5, 448], [0x38, 0xc0, 0x30, 0x7e]),
    ("float8e5m2", "float8_e5m2", [1, -2, 0.5, float("inf")], [0x3c, 0xc0, 0x38, 0x7c]),
)

# Prints what torch.load makes of each file: type and values, or why it does not.
LOADER = '''
import json, sys, torch

for path in sys.argv[1:]:
    try:
        tensor = torch.load(path)
        print(json.dumps([str(tensor.dtype), tensor.float().tolist()]))
    except AttributeError as error:  # no such type in this torch
        print(json.dumps(str(error)))
'''

# Prints one JSON object a tensor: what each way of reading gives, or why it does not.
READER = '''
import json, sys
from deja.trace import Trace, TraceError

def told(read, values):
    try:
        tensor = read()
    except TraceError as error:
        return str(error)
    return [str(tensor.dtype), list(tensor.shape), values(tensor)]

with Trace(sys.argv[1], program=sys.argv[2]) as trace:
    for info in trace.tensor_infos(0, 0):
        if not info.is_result:
            continue
        where = 0, 0, info.seq
        said = {"dtype": info.dtype, "count": info.count, "bytes": info.bytes}
        try:
            import numpy
            said["numpy"] = told(lambda: trace.tensor(*where), lambda one: one.astype("float32").tolist())
            said["read"] = told(lambda: trace.read(info), lambda one: one.astype("float32").tolist())
            said["bits"] = told(lambda: trace.tensor(*where, as_bits=True), lambda one: one.tolist())
            room = numpy.zeros(4, "uint8" if info.bytes == 4 else "uint16")
            assert trace.tensor(*where, as_bits=True, out=room) is room
            said["room"] = room.tolist()
            said["too_small"] = told(lambda: trace.tensor(*where, as_bits=True, out=room[:2]), list)
        except ImportError:
            pass
        try:
            import torch
            said["torch"] = told(lambda: trace.torch_tensor(*where), lambda one: one.float().tolist())
        except ImportError:
            pass
        print(json.dumps(said))
'''

ORDER = (3, 0, 1, 2, 3, 1)
RANDOM_READER = f'''
import json, sys
from deja.trace import Trace, TraceError

with Trace(sys.argv[1], program=sys.argv[2]) as trace:
    seqs = [one.seq for one in trace.tensor_infos(0, 0) if one.is_result]
    read = [trace.tensor(0, 0, seqs[index], of_input=of_input, as_bits=True).tolist()
            for index in {ORDER} for of_input in (False, True)]
    try:
        trace.tensor(0, 0, seqs[-1] + 1, as_bits=True)
    except TraceError as error:
        print(json.dumps({{"read": read, "beyond": str(error)}}))
'''


def has(python, module):
    """Whether it is installed; an import of torch takes seconds."""
    asked = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    return subprocess.run([python, "-c", asked], check=False).returncode == 0


class ElementTypes(harness.DejaTest):
    def setUp(self):
        self.checked(self.deja("record", "--loopback", "-n", 1, "--out", self.trace_path(), "--", sys.executable, APP))

    def read_by(self, python):
        run = self.command([python, "-c", READER, self.trace_path(), harness.DEJA],
                           env={"PYTHONPATH": harness.ROOT / "python"})
        return self.checked(run).json_lines()

    def test_each_way_of_reading(self):
        for python in PYTHONS:
            said = self.read_by(python)
            self.assertEqual([one["dtype"] for one in said], [name for name, _, _, _ in TYPES])
            with self.subTest(python=python):
                if has(python, "numpy"):
                    self.check_numpy(said, has(python, "ml_dtypes"))
                    self.check_order(python)
                if has(python, "torch"):
                    self.check_torch(said)

    def check_numpy(self, said, has_types):
        for one, (name, type_name, values, bits) in zip(said, TYPES):
            integer = f"uint{8 * one['bytes'] // one['count']}"
            self.assertEqual(one["bits"], [integer, [4], bits])
            self.assertEqual(one["room"], bits)
            self.assertIn(f"reading a tensor of {one['bytes']} bytes: out has {one['bytes'] // 2}", one["too_small"])
            if name == "float16" or has_types:
                self.assertEqual((one["numpy"], one["read"]), ([type_name, [4], values],) * 2)
                continue
            self.assertEqual(one["numpy"], one["read"])
            self.assertIn(f"a tensor of {name}: NumPy has no such type: pip install ml_dtypes", one["numpy"])
            self.assertIn(f"as_bits=True) for {integer}", one["numpy"])

    def check_torch(self, said):
        for one, (_, type_name, values, _) in zip(said, TYPES):
            if isinstance(one["torch"], str):
                self.assertIn(f"a tensor of {type_name} needs a newer torch than", one["torch"])
                self.assertIn("float8", type_name)
            else:
                self.assertEqual(one["torch"], [f"torch.{type_name}", [4], values])

    def check_order(self, python):
        """Operations at random: what is looked up ahead is what is there, and beyond the last operation nothing is."""
        said = self.checked(self.command([python, "-c", RANDOM_READER, self.trace_path(), harness.DEJA],
                                         env={"PYTHONPATH": harness.ROOT / "python"})).json()
        wanted = [TYPES[index][3] for index in ORDER for _ in range(2)]
        self.assertEqual(said["read"], wanted)
        self.assertIn("no such operation", said["beyond"])

    def test_files_of_other_libraries(self):
        for kind, words in (("csv", ["not a format of tensors", "--tensor", "0:1"]), ("pt", ["a format of one tensor"])):
            refused = self.deja("export", self.trace_path(), "--format", kind, "--out", self.dir / "x", *words[1:])
            self.assertEqual(refused.code, harness.EXIT_USAGE)
            self.assertIn(f"exporting: --format {kind}: {words[0]}", refused.stderr)
        files = []
        for seq, (name, type_name, values, bits) in enumerate(TYPES, 1):
            for ending in ("safetensors", "pt"):
                files.append(self.dir / f"{name}.{ending}")
                self.checked(self.deja("export", self.trace_path(), "--tensor", f"0:{seq}", "--out", files[-1]))
            written = files[-2].read_bytes()
            size = int.from_bytes(written[:8], "little")
            header = json.loads(written[8:8 + size])[f"0:{seq}"]
            self.assertEqual(header["dtype"], {"float16": "F16", "bfloat16": "BF16", "float8e4m3": "F8_E4M3", "float8e5m2": "F8_E5M2"}[name])
            width = (len(written) - 8 - size) // 4
            self.assertEqual([int.from_bytes(written[8 + size + width * i:][:width], "little") for i in range(4)], bits)
        for python in PYTHONS:
            if not has(python, "torch"):
                continue
            with self.subTest(python=python):
                run = self.checked(self.command([python, "-c", LOADER, *files[1::2]]))
                for said, (_, type_name, values, _) in zip(map(json.loads, run.stdout.splitlines()), TYPES):
                    if isinstance(said, str):
                        self.assertIn("float8", type_name + said)
                    else:
                        self.assertEqual(said, [f"torch.{type_name}", values])

    def test_tables(self):
        """With pyarrow they are those of the trace; without it the command says what it needs."""
        folder = self.dir / "tables"
        run = self.deja("export", self.trace_path(), "--format", "parquet", "--out", folder, "--json")
        if not has("python3", "pyarrow"):
            self.assertEqual(run.code, harness.EXIT_FAILURE)
            self.assertRegex(run.stderr, "exporting: --format parquet: .* has no pyarrow; install it")
            self.assertFalse(folder.exists())
            return
        self.assertEqual(run.code, 0, run)
        asked = "import pyarrow.parquet, sys; print(pyarrow.parquet.read_table(sys.argv[1]).to_pylist())"
        for table, rows in run.json()["rows"].items():
            read = eval(self.checked(self.command(["python3", "-c", asked, folder / f"{table}.parquet"])).stdout)
            self.assertEqual(len(read), rows, table)
            if table == "tensors":
                self.assertEqual([one["dtype"] for one in read if one["is_result"]], [name for name, _, _, _ in TYPES])
            if table == "events":
                self.assertEqual([one["call"] for one in read if one["kind"] == "enter"].count("AllReduce"), len(TYPES))

    def test_tensors_that_differ_between_two_recordings(self):
        other = self.trace_path("other.deja")
        self.checked(self.deja("record", "--loopback", "-n", 1, "--out", other, "--", sys.executable, APP, 10))
        sys.path.insert(0, str(harness.ROOT / "python"))
        from deja.trace import Trace
        with Trace(self.trace_path(), program=str(harness.DEJA)) as one, Trace(other, program=str(harness.DEJA)) as two:
            self.assertEqual(one.tensor_differences(one), [])
            differences = one.tensor_differences(two)
            self.assertEqual([(pair.a.seq, pair.a.dtype, pair.a.is_result) for pair in differences],
                             [(pair.b.seq, "float8e4m3", is_result) for pair, is_result in zip(differences, (False, True))])
            self.assertEqual(one.tensor_differences(two, rank=0), differences)
            infinite, numbers = [next(found for found in one.statistics(0, 0) if found.info.dtype == dtype)
                                 for dtype in ("float16", "float8e4m3")]
            self.assertEqual((infinite.inf_count, infinite.nan_count), (1, 0))
            self.assertEqual((numbers.min, numbers.max, numbers.sum), (-2, 448, 447.5))
            self.assertAlmostEqual(numbers.norm ** 2, 1 + 4 + 0.25 + 448 ** 2)
            self.assertEqual(repr(one), f"Trace({str(self.trace_path())!r})")
            with self.assertRaisesRegex(TypeError, "by rank, comm and seq, or by a Part of an operation; not by 0"):
                one.tensor(0)

    def test_scalars(self):
        trace_path = self.trace_path("scalars.deja")
        self.checked(self.record("stepper", ["--steps=3", "--count=1"], n=1, trace="scalars.deja"))
        sys.path.insert(0, str(harness.ROOT / "python"))
        from deja.trace import Trace
        with Trace(trace_path, program=str(harness.DEJA)) as trace:
            scalars = trace.scalars(0)
            parts = {part.seq: part for one in trace.operations for part in one.parts}
            self.assertEqual([one.seq for one in scalars], sorted(parts))
            self.assertGreaterEqual(len(scalars), 3)
            for one in scalars:
                part = parts[one.seq]
                self.assertEqual((one.step, one.operation, one.where), (part.step, part.operation, part.where))
                shown, = [tensor for tensor in trace.tensors(0, one.comm, one.seq) if tensor["is_result"]]
                self.assertEqual(one.value, float(shown["first_elements"][0]))
            self.assertEqual(trace.scalars(0, comm=5), [])


if __name__ == "__main__":
    harness.main()
