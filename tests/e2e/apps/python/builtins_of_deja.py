"""Calls the functions that Deja's library makes for Python, as Deja's own code does, and in ways in which it should
not."""
import gc
import sys

from deja import engine


class Tensor:
    """What a dense tensor says of itself."""

    is_cpu, layout, dtype = True, "strided", "float32"

    def __init__(self, address, count):
        self.address, self.count = address, count

    def is_contiguous(self):
        return True

    def data_ptr(self):
        return self.address

    def numel(self):
        return self.count

    def element_size(self):
        return 3


class Unknown(Tensor):
    dtype = "float3"


class Elsewhere(Tensor):
    is_cpu = False


class Failing(Tensor):
    def data_ptr(self):
        raise ValueError("no storage")


def raised(call, *arguments):
    try:
        return f"returned {call(*arguments)}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


engine.describe_tensors(Tensor, "strided", {"float32": (7, 4)})
one, other, unknown = Tensor(4096, 2), Tensor(8192, 3), Unknown(16384, 5)
for name, tensors in (("none", None), ("one", one), ("lists", [[one], [other, one]]), ("unknown", [unknown]),
                      ("mixed", (one, unknown)), ("elsewhere", [one, Elsewhere(0, 1)])):
    flat, pieces, dtype = engine.plain(tensors)
    words = None if pieces is None else memoryview(pieces).cast("Q").tolist()
    print(name, len(flat), words, dtype)
print(len(engine.plain([one] * 1000)[0]))
print(raised(engine.plain, [Failing(0, 1)]), raised(engine.plain, 3), raised(engine.plain), sep="\n")
print(engine.as_library(divmod, (7, 2)), raised(engine.as_library, int, ("seven",)))
print(raised(engine.group_done, 1, 1, 255, "text", -1, None), raised(engine.state, b"name", "text", 3)[:9], sep="\n")
print(engine.step(7), engine.step(-1) == 2**64 - 1, raised(engine.step, "seven")[:9])
print(engine.has_bytes(engine.address_of(b"abc"), b"abc"), engine.has_bytes(engine.address_of(b"abc"), b"abd"))

before = sys.getrefcount(one), sys.getrefcount(None), len(gc.get_objects())
for _ in range(1000):
    engine.plain([[one], [one, unknown], None]), engine.as_library(len, ((),))
    raised(engine.plain, [Failing(0, 1)])
after = sys.getrefcount(one), sys.getrefcount(None), len(gc.get_objects())
print("references left:", [b - a > 100 for a, b in zip(before, after)])
