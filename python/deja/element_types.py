"""Element types of tensors of a trace, as names, and as types of NumPy and torch. For deja.trace."""
import functools


class UnknownType(Exception):
    """NumPy or torch has no such type. The message says what to do."""


# By their numbers in common/data_types.def; all others are bytes.
NAMES = {0: "int8", 1: "uint8", 2: "int32", 3: "uint32", 4: "int64", 5: "uint64", 6: "float16", 7: "float32", 8: "float64",
         9: "bfloat16", 10: "float8e4m3", 11: "float8e5m2"}

# NumPy's types of the same size, of names that NumPy lacks.
_SAME_SIZE = {"bfloat16": "uint16", "float8e4m3": "uint8", "float8e5m2": "uint8", "bytes": "uint8"}

# The names of ml_dtypes and torch.
_ML_DTYPES = {"bfloat16": "bfloat16", "float8e4m3": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}


@functools.lru_cache(maxsize=64)
def numpy_type(dtype: str, as_bits: bool = False):
    """NumPy's type of a type of a trace ("float32", "bfloat16"); with `as_bits` the unsigned integer of its size."""
    import numpy

    same_size = _SAME_SIZE.get(dtype, dtype)
    if as_bits:
        return numpy.dtype(f"uint{8 * numpy.dtype(same_size).itemsize}")
    if dtype not in _ML_DTYPES:
        return numpy.dtype(same_size)
    try:
        import ml_dtypes
    except ImportError as error:
        raise UnknownType(f"a tensor of {dtype}: NumPy has no such type: pip install ml_dtypes; or take torch_tensor(…), "
                          f"or tensor(…, as_bits=True) for {same_size}") from error
    return numpy.dtype(getattr(ml_dtypes, _ML_DTYPES[dtype]))


def torch_type(dtype: str):
    """torch's type of a type of a trace."""
    import torch

    name = {"bytes": "uint8"}.get(dtype, _ML_DTYPES.get(dtype, dtype))
    found = getattr(torch, name, None)
    if found is None:
        raise UnknownType(f"a tensor of {name} needs a newer torch than {torch.__version__}")
    return found
