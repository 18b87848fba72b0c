"""What the text of a script says about a replay of it, with the modules beside it that it imports. Nothing is run."""

import ast
import os

_MOST_FILES = 200

# Assignments: the end of the name, the value, and what follows from it.
_SETTINGS = (
    ("cudnn.benchmark", True, "cudnn-benchmark", "warning", "cuDNN chooses its algorithms by their times",
     "torch.backends.cudnn.benchmark = False"),
    ("cudnn.deterministic", False, "cudnn-deterministic", "warning", "cuDNN may choose algorithms that use atomics",
     "torch.backends.cudnn.deterministic = True"),
    ("matmul.allow_tf32", True, "tf32", "note", "TF32 is switched on: a replay on another kind of GPU has other bits",
     "torch.backends.cuda.matmul.allow_tf32 = False"),
    ("cudnn.allow_tf32", True, "tf32", "note", "TF32 is switched on: a replay on another kind of GPU has other bits",
     "torch.backends.cudnn.allow_tf32 = False"),
)

# Modules whose communication goes past what Deja records.
_LIBRARIES = {
    "horovod": "Horovod's own communication",
    "torch.distributed.rpc": "torch.distributed.rpc (TensorPipe)",
    "torch_xla": "XLA's own communication",
    "cupy.cuda.nccl": "CuPy's NCCL, if its wheel has it linked in,",
    "nvshmem": "NVSHMEM",
    "torch.distributed._symmetric_memory": "symmetric memory (stores and loads between GPUs)",
}

_BACKENDS = {"xccl": "gloo", "hccl": "gloo"}  # those of the CPU are recorded, whoever made them


def check(script, words, found):
    """Appends findings by found(id, severity, what, fix). `words` is the job's command."""
    for before, word in zip(words, words[1:]):
        if before.startswith("--") and "backend" in before and "rdzv" not in before and word in _BACKENDS:
            _backend(word, "the command", found)
    for word in words:
        name, _, value = word.partition("=")
        if name.startswith("--") and "backend" in name and "rdzv" not in name and value in _BACKENDS:
            _backend(value, "the command", found)
    if not script:
        found("script", "note", "no script of Python's was seen in the command: its text was not read")
        return
    trees = list(_modules(script, found))
    for path, tree in trees:
        _Reader(os.path.basename(path), found).visit(tree)
    if any("torch" in name.split(".") for _, tree in trees for name in _imports(tree)):
        deterministic = any(_calls_deterministic(tree) for _, tree in trees)
        if not deterministic:
            found("deterministic-algorithms", "note",
                  "the script does not ask for deterministic algorithms: on GPUs sums by atomics differ in each run",
                  "torch.use_deterministic_algorithms(True)")


def _backend(name, where, found):
    found("backend", "problem", f"{where} asks for the backend {name}, whose operations are not recorded",
          f"the backend {_BACKENDS[name]}")


def _modules(script, found):
    """(path, tree) of the script and of the modules beside it that it imports."""
    root = os.path.dirname(os.path.abspath(script))
    waiting, seen = [os.path.abspath(script)], set()
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                tree = ast.parse(file.read(), path)
        except (OSError, SyntaxError, ValueError) as error:
            found("script", "note", f"{path} was not read: {error}")
            continue
        yield path, tree
        for name in _imports(tree):
            base = os.path.join(root, *name.split("."))
            waiting += [p for p in (base + ".py", os.path.join(base, "__init__.py")) if os.path.isfile(p)]


def _imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _dotted(node):
    """'torch.backends.cudnn.benchmark' of an expression; '' of others."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join(reversed(names + [node.id])) if isinstance(node, ast.Name) else ""


def _constant(node):
    return node.value if isinstance(node, ast.Constant) else None


def _calls_deterministic(tree):
    return any(isinstance(node, ast.Call) and _dotted(node.func).endswith("use_deterministic_algorithms")
               and not (node.args and _constant(node.args[0]) is False) for node in ast.walk(tree))


class _Reader(ast.NodeVisitor):
    def __init__(self, name, found):
        self._name, self._found, self._told = name, found, set()

    def _say(self, node, id, severity, what, fix):
        if (id, what) not in self._told:
            self._told.add((id, what))
            self._found(id, severity, f"{self._name}:{node.lineno}: {what}", fix)

    def visit_Assign(self, node):
        for target in node.targets:
            for name, value, *what in _SETTINGS:
                if f".{_dotted(target)}".endswith("." + name) and _constant(node.value) is value:
                    self._say(node, *what)
        self.generic_visit(node)

    def visit_Import(self, node):
        self._library(node, [alias.name for alias in node.names])

    def visit_ImportFrom(self, node):
        module = node.module or ""
        self._library(node, [module] + [f"{module}.{alias.name}" for alias in node.names])

    def _library(self, node, names):
        for library, what in _LIBRARIES.items():
            if any(name == library or name.startswith(library + ".") for name in names):
                self._say(node, "library", "problem", f"{what} is not recorded",
                          "torch.distributed with gloo or nccl")

    def visit_Call(self, node):
        name = _dotted(node.func).rpartition(".")[2]
        first = _constant(node.args[0]) if node.args else None
        if name in ("init_process_group", "new_group"):
            given = [_constant(k.value) for k in node.keywords if k.arg == "backend"] + [first]
            for backend in given:
                if backend in _BACKENDS:
                    _backend(backend, f"{self._name}:{node.lineno}", self._found)
        elif name == "use_deterministic_algorithms" and first is False:
            self._say(node, "deterministic-algorithms", "warning", "non-deterministic algorithms are allowed",
                      "torch.use_deterministic_algorithms(True)")
        elif name == "set_float32_matmul_precision" and first in ("high", "medium"):
            self._say(node, "tf32", "note", f"matrix products may use TF32 ({first}): a replay on another kind of GPU "
                      "has other bits", "torch.set_float32_matmul_precision('highest')")
        self.generic_visit(node)
