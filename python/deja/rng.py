"""Steps of the training loop, with the states of random number generators as they begin. So a replay names the
generator that went another way, before the numbers that it draws differ.

Only generators of modules that the program has imported: Python's, NumPy's global one, torch's on CPUs and, where it is
in use, CUDA. A trace has their hashes.
"""

import array
import ctypes
import sys

from deja import engine
from deja.interpreter import python_stack


def begin_step(number):
    """A step of the training loop begins with the states as they are now. Returns the step to go on with."""
    if python_stack.IS_FOUND:
        return _begin_step(number)
    before = engine.python_at(python_stack.here(1))
    try:
        return _begin_step(number)
    finally:
        engine.python_at(before)


def _begin_step(number):
    number = engine.step(number)
    compare()
    return number


def compare():
    """Snapshots of the states, for a replay to compare."""
    modules = sys.modules
    for name, tell in _GENERATORS:
        module = modules.get(name)
        if module is not None:
            tell(module)


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
    """For a dense tensor on the CPU."""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def torch_state(data):
    """A state as torch's generators take it."""
    torch = sys.modules["torch"]
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


# Bytes of a Mersenne twister, which both generators are: 624 words and a place among them.
_TWISTER = 4 * 625


class _PythonState:
    """The state of Python's generator, from where CPython keeps it, since getstate makes 625 objects of it."""

    def __init__(self):
        self._generator = self._address = None

    def _look_at(self, generator):
        # _random.Random is an object's head, the place and the words; what getstate says must be there.
        self._generator, self._address = generator, None
        address = id(generator) + object.__basicsize__
        if sys.implementation.name == "cpython" and type(generator).__basicsize__ >= object.__basicsize__ + _TWISTER:
            words = array.array("I", generator.getstate()[1]).tobytes()
            if engine.has_bytes(address, words[-4:] + words[:-4]):
                self._address = address

    def tell(self, random):
        generator = getattr(random.getstate, "__self__", None)
        if generator is not self._generator:
            self._look_at(generator)
        if self._address is not None:
            engine.twister(_PYTHON, self._address, generator.gauss_next)
            return
        _version, words, gauss = random.getstate()
        held = array.array("I", words).tobytes()
        if gauss is not None:
            held += array.array("d", (gauss,)).tobytes()
        engine.state(_PYTHON, engine.address_of(held), len(held))


class _NumpyState:
    """The state of NumPy's global generator, which is asked only if that of its bits is another one than before.

    As long as it has drawn no bits since it had no second normal number in store, it has none.
    """

    def __init__(self):
        self._owner = self._bits = self._address = self._seen = None

    def _look_at(self, random):
        """What get_state says, as bytes."""
        self._seen = None
        state = random.get_state(legacy=False)
        inner = state["state"]
        key = inner.get("key")
        if key is None:  # the program has put another generator there
            return repr(sorted(inner.items())).encode()
        held = key.tobytes() + array.array("I", (inner["pos"],)).tobytes()
        if state["has_gauss"]:
            return held + array.array("d", (state["gauss"],)).tobytes()
        self._owner = getattr(random.get_state, "__self__", None)
        self._bits = getattr(self._owner, "_bit_generator", None)
        access = getattr(self._bits, "ctypes", None)
        if access is not None and engine.has_bytes(access.state_address, held):
            self._address, self._seen = access.state_address, held
        return held

    def tell(self, random):
        seen = self._seen
        if seen is not None and self._bits is self._owner._bit_generator and engine.has_bytes(self._address, seen):
            engine.state(_NUMPY, self._address, _TWISTER)
        else:
            held = self._look_at(random)
            engine.state(_NUMPY, engine.address_of(held), len(held))


def _tell_torch(torch):
    # A torch that is being imported has not all its parts.
    generator = getattr(torch, "default_generator", None)
    if generator is None:
        return
    state = generator.get_state()
    engine.state(_TORCH, state.data_ptr(), state.numel())
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and cuda.is_initialized():
        for number, generator in enumerate(cuda.default_generators):
            state = generator.get_state()
            engine.state(_TORCH + b".cuda.%d" % number, state.data_ptr(), state.numel())


_PYTHON, _NUMPY, _TORCH = b"rng/python", b"rng/numpy", b"rng/torch"
_GENERATORS = (("random", _PythonState().tell), ("numpy.random", _NumpyState().tell), ("torch", _tell_torch))
