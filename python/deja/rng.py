"""Steps of the training loop, with the states of random number generators as they begin, so that a replay says which generator went another way, before the
numbers that come of it do.

Only generators of modules that the program has imported: Python's, NumPy's global one, torch's on CPUs and, where it is
in use, CUDA. A trace has their hashes.
"""

import array
import sys

from deja import engine, python_stack


def begin_step(number):
    """A step of the training loop begins with the states as they are now."""
    before = engine.python_at(python_stack.here(1))
    try:
        engine.step(number)
        for module, states in _GENERATORS:
            imported = sys.modules.get(module)
            if imported is not None:
                for name, data, size in states(imported):
                    engine.state("rng/" + name, data, size)
    finally:
        engine.python_at(before)


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
