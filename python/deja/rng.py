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
    before = None if python_stack.IS_FOUND else engine.python_at(python_stack.here(1))
    try:
        number = engine.step(number)
        compare()
    finally:
        if before is not None:
            engine.python_at(before)
    return number


def compare():
    """Snapshots of the states, for a replay to compare."""
    if not engine.states_if(*_known):
        _look_and_compare()


def _look_and_compare():
    global _known
    looked = _Looked()
    for name, tell in _GENERATORS:
        module = sys.modules.get(name)
        if module is None:
            looked.absent.append(name)
        else:
            tell(module, looked)
    engine.states(looked.told)
    _known = looked.known()


class _Looked:
    """What engine.states() is to tell, and on what conditions it could tell the same the next time without a look."""

    def __init__(self):
        self.attributes, self.absent, self.memory, self.told = [], [], [], []
        self.holds = True

    def known(self):
        """As engine.states_if() takes it."""
        return (self.attributes, sys.modules, self.absent, self.memory, self.told) if self.holds else _UNKNOWN


_UNKNOWN = ([(sys, "modules", None)], sys.modules, (), (), ())
_known = _UNKNOWN


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

    def tell(self, random, looked):
        generator = getattr(random.getstate, "__self__", None)
        if generator is not self._generator:
            self._look_at(generator)
        if self._address is not None:
            gauss = generator.gauss_next
            looked.attributes += [(random, "getstate", random.getstate), (generator, "gauss_next", gauss)]
            looked.told.append((_PYTHON, self._address, None, gauss))
            return
        looked.holds = False
        _version, words, gauss = random.getstate()
        held = array.array("I", words).tobytes()
        if gauss is not None:
            held += array.array("d", (gauss,)).tobytes()
        looked.told.append(_bytes(_PYTHON, held))


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

    def tell(self, random, looked):
        seen = self._seen
        if seen is not None and self._bits is self._owner._bit_generator and engine.has_bytes(self._address, seen):
            looked.told.append((_NUMPY, self._address, len(seen), seen))
        else:
            looked.told.append(_bytes(_NUMPY, self._look_at(random)))
        if self._seen is None:
            looked.holds = False
            return
        looked.attributes.append((self._owner, "_bit_generator", self._bits))
        looked.memory.append((self._address, self._seen))


def _bytes(name, held):
    """As engine.states() takes them."""
    return name, engine.address_of(held), len(held), held


def _tell_torch(torch, looked):
    # A torch that is being imported has not all its parts.
    generator = getattr(torch, "default_generator", None)
    if generator is None:
        looked.holds = False
        return
    looked.attributes.append((torch, "default_generator", generator))
    looked.told.append((_TORCH, None, generator.get_state, None))
    cuda = sys.modules.get("torch.cuda")
    if cuda is None:
        looked.absent.append("torch.cuda")
    elif not cuda.is_initialized():
        looked.attributes.append((cuda, "_initialized", cuda._initialized))
    else:
        looked.holds = False
        for number, generator in enumerate(cuda.default_generators):
            looked.told.append((_TORCH + b".cuda.%d" % number, None, generator.get_state, None))


_PYTHON, _NUMPY, _TORCH = b"rng/python", b"rng/numpy", b"rng/torch"
_GENERATORS = (("random", _PythonState().tell), ("numpy.random", _NumpyState().tell), ("torch", _tell_torch))
