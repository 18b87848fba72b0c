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
def operation(inputs, outputs, real=max, arguments=(7, 2)):
    return engine.operation("c10d_allreduce", real, arguments, {}, inputs, outputs, 0, 0, 0, 0, 0)


def words(pieces):
    return memoryview(pieces).cast("Q").tolist()


for name, tensors in (("none", None), ("one", one), ("lists", [[one], [other, one]]), ("unknown", [unknown]),
                      ("mixed", (one, unknown)), ("elsewhere", [one, Elsewhere(0, 1)]), ("many", [one] * 1000)):
    made = operation(tensors, tensors)
    if made is None:
        print(name, None)
        continue
    value, number, answer, inputs, outputs, pieces, dtype = made
    print(name, value, number, answer, inputs is outputs, len(outputs), words(pieces), dtype)
for inputs, outputs in (((one,), [other]), ([one], []), ([], [other]), ([], []), ([one], [unknown])):
    *_, read, written, pieces, dtype = operation(inputs, outputs)
    print(len(read), len(written), words(pieces), dtype)
print(operation([one], [Elsewhere(0, 1)]), operation([Elsewhere(0, 1)], [one]))
for tensors in ([Failing(0, 1)], 3):
    print(raised(operation, tensors, tensors), raised(operation, [one], tensors), raised(operation, tensors, [one]), sep="\n")
print(raised(operation, one, one, int, ("seven",)), raised(engine.operation), sep="\n")
print(engine.as_library(divmod, (7, 2)), raised(engine.as_library, int, ("seven",)))
print(raised(engine.ending, 1, 1, 255, "text", None), raised(engine.states, [(b"name", "text", 3, None)])[:9], sep="\n")
print(raised(engine.states, [(b"name", 0)]), raised(engine.states, 3), sep="\n")
end = engine.ending(1, 1, 255, b"", lambda: print("looks") or -1)
print(end(divmod, (7, 2)), end(None, ()), raised(end, int, ("seven",)))
failed = engine.ending(1, 1, 255, b"", lambda: print("looks"))
print(raised(failed, int, ("seven",)), raised(failed, len, ((),)), raised(failed), sep="\n")
looking = engine.ending(1, 1, 255, b"", lambda: int("seven"))
print(raised(looking, len, ((),)), raised(looking, len, ((),)), sep="\n")
print(engine.step(7), engine.step(-1) == 2**64 - 1, raised(engine.step, "seven")[:9])
print(engine.has_bytes(engine.address_of(b"abc"), b"abc"), engine.has_bytes(engine.address_of(b"abc"), b"abd"))

before = sys.getrefcount(one), sys.getrefcount(None), len(gc.get_objects())
for _ in range(1000):
    operation([[one], [one, unknown], None], [one]), engine.as_library(len, ((),))
    raised(operation, [Failing(0, 1)], [one])
    engine.ending(1, 1, 255, b"", lambda: -1)(len, ((),))
    raised(engine.ending(1, 1, 255, b"", None), int, ("seven",))
after = sys.getrefcount(one), sys.getrefcount(None), len(gc.get_objects())
print("references left:", [b - a > 100 for a, b in zip(before, after)])
