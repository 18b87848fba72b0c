"""Has the states of the generators of Python and NumPy recorded after each act. Prints the digests that they should
have, which are those of what getstate and get_state say."""
import array
import random

from deja import engine, rng


def said_by_python():
    _version, words, gauss = random.getstate()
    return array.array("I", words).tobytes() + (b"" if gauss is None else array.array("d", (gauss,)).tobytes())


def said_by_numpy(numpy):
    state = numpy.random.get_state(legacy=False)
    inner, gauss = state["state"], array.array("d", (state["gauss"],)).tobytes()
    return inner["key"].tobytes() + array.array("I", (inner["pos"],)).tobytes() + (gauss if state["has_gauss"] else b"")


def show(name, said):
    print(name, engine.digest_entry(engine.address_of(said), len(said)).to_bytes(8, "little").hex())


for act in (int, random.random, lambda: random.gauss(0, 1), random.random, lambda: random.gauss(0, 1),
            lambda: random.seed(3), lambda: [random.random() for _ in range(700)]):
    act()
    show("rng/python", said_by_python())
    rng.compare()
try:
    import numpy
except ImportError:
    numpy = None
if numpy is not None:
    for act in (int, int, numpy.random.rand, numpy.random.randn, int, numpy.random.randn, int, numpy.random.rand,
                lambda: numpy.random.seed(7), numpy.random.randn, lambda: numpy.random.rand(700)):
        act()
        show("rng/python", said_by_python())
        show("rng/numpy", said_by_numpy(numpy))
        rng.compare()
