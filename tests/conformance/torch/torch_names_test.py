"""Every method and attribute of ProcessGroup, Backend and Work of the installed torch goes through Deja's groups. It
reaches the real group, and it is recorded or reported as not recorded. DEJA_TORCH_PYTHON names the Python (default:
Debian's)."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]

# What Deja's group answers itself: its arguments, and its number of operations.
ANSWERED = {
    *("rank", "size", "name", "_get_backend_name", "_get_backend", "get_backend", "_device_types", "group_name"),
    *("group_desc", "bound_device_id", "get_group_store", "_has_hooks", "_wait_for_pending_works"),
    *("_set_sequence_number_for_group", "_get_sequence_number_for_group", "_set_default_backend", "_register_backend"),
}
# Reach the real group, and there is nothing that a trace would need of them.
SETTINGS = {"abort", "shutdown", "set_timeout", "_set_default_timeout", "_set_group_name", "_set_group_desc", "split_group"}


def value_for(kind, c10d, torch):
    """An argument of that type, as pybind11 writes types."""
    if "Tensor" in kind:
        value = torch.zeros(2)
        for _ in range(len(re.findall(r"(?:Sequence|List)\[", kind))):
            value = [value]
        return value
    if re.search(r"(Sequence|List)\[", kind):
        return [2]
    if "Options" in kind:
        made = getattr(c10d, re.search(r"\w*Options", kind)[0], None)
        return made and made()
    if "Callable" in kind or kind == "object":
        return print
    if "device" in kind:
        return torch.device("cpu")
    if "timedelta" in kind:
        import datetime

        return datetime.timedelta(seconds=1)
    if "bool" in kind:
        return True
    return "text" if "str" in kind else 0


def arguments(doc, c10d, torch):
    """Those that the first form of a method needs, and whether it is an operation: it moves tensors and returns a
    Work."""
    line = next((line for line in doc.splitlines() if "->" in line), "")
    inside = re.search(r"\((.*)\) ->", line)[1] if line else ""
    parts = re.split(r", (?=\w+: )", inside)[1:]
    types = [re.split(r": ", part, maxsplit=1)[1] for part in parts if ": " in part]
    is_operation = any("Tensor" in kind for kind in types) and line.rstrip().endswith("Work")
    needed = [kind for kind in types if " = " not in kind or "Options" in kind]
    return [value_for(kind.split(" = ")[0], c10d, torch) for kind in needed], is_operation


def main():
    """In the Python that has torch. Prints what is wrong, a line each."""
    import torch
    from torch._C import _distributed_c10d as c10d

    from deja import engine
    from deja.interpreter import python_stack
    from deja.distributed import torch_groups, torch_operations, torch_passing, torch_works

    rows = set(re.findall(r"DEJA_FN\(\d+, int, (c10d_\w+)", (ROOT / "api/tables/c10d.def").read_text()))
    methods, properties = torch_passing.names()
    reached, recorded, said = [], [], []

    def group_call(function, real, arguments, keywords, *_):
        recorded.append(function)
        return real(*arguments, **keywords), 1, 0, None

    def store_call(function, key, real):
        value = real()
        if value != b"!":
            recorded.append(function)
        return value

    engine.group_call, engine.store_call = group_call, store_call
    engine.operation = lambda *_: None
    python_stack.here = lambda depth: 0
    engine.not_recorded = lambda what, may_be=False: said.append(what)
    engine.as_library = lambda call, arguments=(): call(*arguments)
    named = {name: (lambda name: lambda self, *args, **kwargs: reached.append(name))(name) for name in methods}
    named |= {name: property((lambda name: lambda self: reached.append(name))(name)) for name in properties}
    real = type("Real", (), named)()

    group = torch_groups.Recorded.__new__(torch_groups.Recorded)
    torch_operations.Group.__init__(group, 0, 1, "gloo")
    group._deja_real = group._deja_as_group = real
    group._deja_store, group._deja_group, group._deja_timeout = None, 1, None
    same = {**torch_operations.RENAMED, **{old: new for new, old in torch_operations.RENAMED.items()}}

    for name in sorted(methods | properties):
        owner = next(kind for kind in type(group).__mro__ if name in vars(kind)) if hasattr(type(group), name) else None
        if owner in (c10d.ProcessGroup, object):
            print(f"{name} is torch's own: nothing of it comes to Deja")
            continue
        if name in ANSWERED:
            continue
        for made in (reached, recorded, said):
            made.clear()
        is_operation = False
        try:
            if name in properties:
                getattr(group, name)
            else:
                kinds = (c10d.ProcessGroup, getattr(c10d, "Backend", c10d.ProcessGroup))
                kind = next(kind for kind in kinds if hasattr(kind, name))
                given, is_operation = arguments(getattr(kind, name).__doc__ or "", c10d, torch)
                getattr(group, name)(*given)
        except Exception as error:
            print(f"{name} raises: {type(error).__name__}: {error}")
        if not {name, same.get(name)} & set(reached):
            print(f"{name} does not reach the real group")
        if is_operation and not rows & set(recorded):
            print(f"{name} is an operation, and not recorded")
        if not recorded and not said and name not in SETTINGS | torch_passing.AS_IT_IS:
            print(f"{name} is neither recorded nor said not to be")

    for kind in (torch_works.RecordedWork, torch_works.ServedWork):
        for name in set(dir(c10d.Work)) - set(dir(object)) - torch_passing.OWN:
            if callable(getattr(c10d.Work, name)) and getattr(kind, name) is getattr(c10d.Work, name):
                print(f"{kind.__name__}.{name} is torch's own: it does not reach the real work")
    print(f"{len(methods)} methods, {len(properties)} attributes of torch {torch.__version__}")


PYTHON = os.environ.get("DEJA_TORCH_PYTHON", "/usr/bin/python3")
_ASKED = "import torch.distributed as d; assert d.is_available()"


class TorchNames(unittest.TestCase):
    def test_names(self):
        if subprocess.run([PYTHON, "-c", _ASKED], capture_output=True, check=False).returncode != 0:
            self.skipTest(f"{PYTHON} has no torch with torch.distributed: set DEJA_TORCH_PYTHON to a Python that has one")
        run = subprocess.run([PYTHON, __file__, "--inside"], capture_output=True, text=True, check=False,
                             env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(run.returncode, 0, run.stderr)
        *wrong, counts = run.stdout.splitlines()
        self.assertEqual(wrong, [], counts)
        self.assertRegex(counts, r"^[1-9]\d* methods")


if __name__ == "__main__":
    if sys.argv[1:] == ["--inside"]:
        main()
    else:
        unittest.main(verbosity=2)
