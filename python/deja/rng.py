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
                engine.state(name, data, size)


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
            if self._words_at(address) == words:
                self._address = address

    @staticmethod
    def _words_at(address):
        held = ctypes.string_at(address, _TWISTER)
        return held[4:] + held[:4]

    def __call__(self, random):
        generator = getattr(random.getstate, "__self__", None)
        if generator is not self._generator:
            self._look_at(generator)
        if self._address is not None:
            held, gauss = self._words_at(self._address), generator.gauss_next
        else:
            _version, words, gauss = random.getstate()
            held = array.array("I", words).tobytes()
        if gauss is not None:
            held += array.array("d", (gauss,)).tobytes()
        yield b"rng/python", engine.address_of(held), len(held)


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
        if access is not None and ctypes.string_at(access.state_address, _TWISTER) == held:
            self._address, self._seen = access.state_address, held
        return held

    def __call__(self, random):
        held = self._seen
        if (
            held is None
            or self._bits is not self._owner._bit_generator
            or ctypes.string_at(self._address, _TWISTER) != held
        ):
            held = self._look_at(random)
        yield b"rng/numpy", engine.address_of(held), len(held)


def _of_torch(torch):
    # A torch that is being imported has not all its parts.
    generator = getattr(torch, "default_generator", None)
    if generator is None:
        return
    state = generator.get_state()
    yield b"rng/torch", state.data_ptr(), state.numel()
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and cuda.is_initialized():
        for number, generator in enumerate(cuda.default_generators):
            state = generator.get_state()
            yield b"rng/torch.cuda.%d" % number, state.data_ptr(), state.numel()


_GENERATORS = (("random", _PythonState()), ("numpy.random", _NumpyState()), ("torch", _of_torch))
