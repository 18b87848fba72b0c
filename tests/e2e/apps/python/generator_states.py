"""What Deja takes for the states of the generators of Python and NumPy is what getstate and get_state say. Needs no
recording."""
import array
import ctypes
import random
import sys

sys.path.insert(0, sys.argv[1])
from deja import rng  # noqa: E402


def seen(of, module):
    for _name, address, size in of(module):
        return ctypes.string_at(address, size)


def said_by_python():
    _version, words, gauss = random.getstate()
    return array.array("I", words).tobytes() + (b"" if gauss is None else array.array("d", (gauss,)).tobytes())


def said_by_numpy(numpy):
    state = numpy.random.get_state(legacy=False)
    inner, gauss = state["state"], array.array("d", (state["gauss"],)).tobytes()
    return inner["key"].tobytes() + array.array("I", (inner["pos"],)).tobytes() + (gauss if state["has_gauss"] else b"")


states = dict(rng._GENERATORS)
for act in (int, random.random, lambda: random.gauss(0, 1), random.random, lambda: random.gauss(0, 1),
            lambda: random.seed(3), lambda: [random.random() for _ in range(700)]):
    act()
    assert seen(states["random"], random) == said_by_python()
try:
    import numpy
except ImportError:
    numpy = None
if numpy is not None:
    for act in (int, int, numpy.random.rand, numpy.random.randn, int, numpy.random.randn, int, numpy.random.rand,
                lambda: numpy.random.seed(7), numpy.random.randn, lambda: numpy.random.rand(700)):
        act()
        assert seen(states["numpy.random"], numpy.random) == said_by_numpy(numpy)
print("equal")
