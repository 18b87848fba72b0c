"""Steps of the training loop, with the states of random number generators as they begin, so that a replay says which generator went another way, before the
numbers that come of it do.

Only generators of modules that the program has imported: Python's, NumPy's global one, torch's on CPUs and, where it is
in use, CUDA. A trace has their hashes.
"""

import array
import ctypes
import sys

from deja import engine, python_stack


def begin_step(number):
    """A step of the training loop begins with the states as they are now. Returns the step to go on with."""
    before = engine.python_at(python_stack.here(1))
    try:
        number = engine.step(number)
        compare()
        return number
    finally:
        engine.python_at(before)


def compare():
    """Snapshots of the states, for a replay to compare."""
    for module, states in _GENERATORS:
        imported = sys.modules.get(module)
        if imported is not None:
            for name, data, size in states(imported):
                engine.state("rng/" + name, data, size)


def save():
    """The states themselves, for load()."""
    held = {}
    random, numpy, torch = map(sys.modules.get, ("random", "numpy.random", "torch"))
    if random is not None:
        held["python"] = random.getstate()
    if numpy is not None:
        held["numpy"] = numpy.get_state(legacy=False)
    if torch is not None:
        held["torch"] = tensor_bytes(torch.get_rng_state())
        if torch.cuda.is_initialized():
            held["torch.cuda"] = [tensor_bytes(state) for state in torch.cuda.get_rng_state_all()]
    return held


def load(held):
    random, numpy, torch = map(sys.modules.get, ("random", "numpy.random", "torch"))
    if random is not None and "python" in held:
        random.setstate(held["python"])
    if numpy is not None and "numpy" in held:
        numpy.set_state(held["numpy"])
    if torch is not None and "torch" in held:
        torch.set_rng_state(torch_state(held["torch"]))
        if "torch.cuda" in held:
            torch.cuda.set_rng_state_all([torch_state(state) for state in held["torch.cuda"]])


def tensor_bytes(tensor):
    """Of a dense tensor on the CPU."""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def torch_state(data):
    """A state as torch's generators take it."""
    torch = sys.modules["torch"]
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _of_python(random):
    _version, words, gauss = random.getstate()
    held = array.array("I", words)
    held.extend(array.array("I", array.array("d", (gauss,)).tobytes()) if gauss is not None else ())
    yield "python", held.buffer_info()[0], len(held) * held.itemsize


def _of_numpy(random):
    state = random.get_state(legacy=False)
    inner = state["state"]
    key = inner.get("key")
    if key is None:  # somebody has put another generator there
        held = repr(sorted(inner.items())).encode()
        yield "numpy", engine.address_of(held), len(held)
        return
    held = array.array("I", key.tobytes())
    held.append(inner["pos"])
    held.extend(array.array("I", array.array("d", (state["gauss"],)).tobytes()) if state["has_gauss"] else ())
    yield "numpy", held.buffer_info()[0], len(held) * held.itemsize


def _of_torch(torch):
    # A torch that is being imported has not all its parts.
    generator = getattr(torch, "default_generator", None)
    if generator is None:
        return
    state = generator.get_state()
    yield "torch", state.data_ptr(), state.numel()
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and cuda.is_initialized():
        for number, generator in enumerate(cuda.default_generators):
            state = generator.get_state()
            yield f"torch.cuda.{number}", state.data_ptr(), state.numel()


_GENERATORS = (("random", _of_python), ("numpy.random", _of_numpy), ("torch", _of_torch))
