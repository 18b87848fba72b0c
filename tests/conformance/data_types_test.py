#!/usr/bin/env python3
"""Types of tensors' elements and NCCL's results are listed once: common/data_types.def and
common/text/nccl_result_text.h. NCCL's header, gdb's Python and PyTorch's side have the same numbers and names."""
import ast
import pathlib
import re
import struct
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NCCL = (ROOT / "include/compat/nccl.h").read_text()
TYPES = {int(number): (name, int(size), int(mantissa)) for number, name, size, mantissa in
         re.findall(r"(?m)^DEJA_DTYPE\((\d+), (\w+), (\d+), (\d+)\)", (ROOT / "common/data_types.def").read_text())}
RAW = 255  # format::kRawBytes


def enumerators(type_name):
    body = re.search(r"typedef enum(?: \w+)? \{([^}]*)\} " + type_name + ";", NCCL).group(1)
    return {name: int(number) for name, number in re.findall(r"(\w+)\s*=\s*(\d+)", body)}


def assigned(path, name):
    """The value of a variable at the top of a Python file, as a syntax tree."""
    tree = ast.parse((ROOT / path).read_text())
    value, = (node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == name)
    return value


class DataTypes(unittest.TestCase):
    def test_the_table_counts_from_0(self):
        self.assertEqual(sorted(TYPES), list(range(12)))

    def test_numbers_are_nccls(self):
        numbers = {name.lower(): number for name, number in enumerators("ncclDataType_t").items()}
        for number, (name, _, _) in TYPES.items():
            self.assertEqual(numbers["nccl" + name], number, name)
        self.assertEqual(numbers["ncclnumtypes"], len(TYPES))

    def test_gdb_has_the_same(self):
        theirs = ast.literal_eval(assigned("gdb/deja_gdb/tensors.py", "DTYPES"))
        self.assertEqual({number: name for number, (name, _) in theirs.items() if number != RAW},
                         {number: name for number, (name, _, _) in TYPES.items()})
        for number, (name, code) in theirs.items():
            if number != RAW and code is not None:
                self.assertEqual(struct.calcsize(code), TYPES[number][1], name)

    def test_torchs_types_have_the_same_numbers_and_sizes(self):
        known = {name: number for number, (name, _, _) in TYPES.items()}
        parts = {"bool": "uint8", "complex64": "float32", "complex128": "float64"}
        theirs = assigned("python/deja/torch_dtypes.py", "DTYPES")
        self.assertGreater(len(theirs.keys), 8)
        for key, value in zip(theirs.keys, theirs.values):
            self.assertEqual(value.value, known[parts.get(key.attr, key.attr)], key.attr)
        sizes = ast.literal_eval(assigned("python/deja/torch_dtypes.py", "ELEMENT_BYTES"))
        self.assertEqual(list(sizes), [TYPES[number][1] for number in range(len(sizes))])


class Results(unittest.TestCase):
    def test_names_are_nccls_in_their_order(self):
        text = (ROOT / "common/text/nccl_result_text.h").read_text()
        table = re.search(r"kNcclResults\[\] = \{(.*?)\n\};", text, re.S).group(1)
        names = re.findall(r'\{"(nccl\w+)"', table)
        theirs = enumerators("ncclResult_t")
        del theirs["ncclNumResults"]
        self.assertEqual({name: number for number, name in enumerate(names)}, theirs)
        for constant, name in ("kNcclSuccess", "ncclSuccess"), ("kNcclInProgress", "ncclInProgress"):
            self.assertEqual(int(re.search(rf"{constant} = (\d+);", text).group(1)), theirs[name])


if __name__ == "__main__":
    unittest.main()
