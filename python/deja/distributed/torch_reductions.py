"""The reduction of an operation, as the number that a trace has."""

from torch._C import _distributed_c10d as c10d

from deja import engine

# ncclRedOp_t; c10d's others are -1 less their number.
_NUMBERS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3, "AVG": 4, "BAND": -1, "BOR": -2, "BXOR": -3}
_OTHER = -9
_KINDS = {getattr(c10d.ReduceOp, name): number for name, number in _NUMBERS.items() if hasattr(c10d.ReduceOp, name)}
# By what hash() says, which is quicker than ==: torch's own number of the kind, in each release.
_BY_HASH = {hash(kind): number for kind, number in _KINDS.items()}


def number_of(opts):
    """opts: an operation's options; the reduction itself; None: the operation's own default."""
    place = _PLACES.get(type(opts))
    if place is not None:
        return _BY_HASH.get(engine.value_byte(opts, place), _OTHER)
    op = getattr(opts, "reduceOp", opts)
    return 0 if op is None else _BY_HASH.get(hash(op), _OTHER)


def _place_in(kind):
    """Where such options, an object of C++, have the byte that hash() tells; None: not known. To tell it, torch makes
    another object, which takes 8 us in a training step."""
    if type(kind).__name__ != "pybind11_type":
        return None
    made = []
    for op in _KINDS:
        opts = kind()
        opts.reduceOp = op
        made.append((opts, hash(op)))
    for place in range(_MOST_BYTES):
        if all(engine.value_byte(opts, place) == number for opts, number in made):
            return place
    return None


_MOST_BYTES = 32  # of the options that are looked at: the reduction is their first member
_PLACES = {}
if engine.value_byte is not None:
    for _name in ("AllreduceOptions", "ReduceOptions", "ReduceScatterOptions"):
        _place = _place_in(getattr(c10d, _name))
        if _place is not None:
            _PLACES[getattr(c10d, _name)] = _place
