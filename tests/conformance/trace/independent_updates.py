"""What an optimizer's update makes of its state, for independent_reader.py: docs/FORMAT.md, "Predictions".

Single precision by Python's doubles, which have room enough for one operation to be rounded twice, but for a fused one,
which is computed with fractions.
"""
import math
import struct
from fractions import Fraction


def single(value):
    """The nearest float32, of a float or an exact fraction."""
    if isinstance(value, Fraction):
        if value == 0:
            return 0.0
        # Units of the last place: so that 2^23 <= value / unit < 2^24, but for denormal numbers.
        exponent = abs(value.numerator).bit_length() - value.denominator.bit_length() - 23
        if abs(value) < Fraction(2) ** (exponent + 23):
            exponent -= 1
        unit = Fraction(2) ** max(exponent, -149)
        value = float(round(value / unit) * unit)  # round() rounds to even
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


class Single:
    """A float32 with the operations of the processor."""

    def __init__(self, value):
        self.value = single(value)

    def __add__(self, other):
        return Single(self.value + other.value)

    def __sub__(self, other):
        return Single(self.value - other.value)

    def __mul__(self, other):
        return Single(self.value * other.value)

    def __neg__(self):
        return Single(-self.value)

    def __truediv__(self, other):
        a, b = self.value, other.value
        if b != 0:
            return Single(a / b)
        if a == 0 or math.isnan(a) or math.isnan(b):
            return Single(math.nan)
        return Single(math.copysign(math.inf, a) * math.copysign(1, b))

    def sqrt(self):
        return Single(math.sqrt(self.value) if self.value >= 0 else math.nan)

    def bits(self):
        return b"\x00\x00\xc0\x7f" if math.isnan(self.value) else struct.pack("<f", self.value)


def fma(a, b, c):
    parts = [a.value, b.value, c.value]
    if any(math.isnan(part) or math.isinf(part) for part in parts) or a.value * b.value == 0 or c.value == 0:
        return a * b + c
    return Single(Fraction(a.value) * Fraction(b.value) + Fraction(c.value))


def update(rules, n, g, p, m, v):
    """One update of one element; parts that are not there are None."""
    method, gradient_rule, first, second, rule = rules
    scale, decay, keep, add, rate, shrink = n[:6]
    if scale.value != 1:
        g = g * scale
    if decay.value != 0:
        g = g + decay * p if gradient_rule == 0 else fma(decay, p, g)
    if m is not None:
        m = (lambda: keep * m + add * g, lambda: fma(add, g, keep * m), lambda: fma(keep, m, add * g),
             lambda: m + add * (g - m), lambda: fma(add, g - m, m))[first]()
    if method == 2 and v is not None:
        keep2, add2 = n[6:8]
        v = (lambda: keep2 * v + add2 * g * g, lambda: keep2 * v + add2 * (g * g),
             lambda: fma(add2 * g, g, keep2 * v), lambda: fma(add2, g * g, keep2 * v),
             lambda: fma(keep2, v, add2 * g * g), lambda: fma(keep2, v, add2 * (g * g)))[second]()
    if p is not None and method == 1:
        p = (lambda: p * shrink - rate * m, lambda: fma(-rate, m, p * shrink),
             lambda: p * shrink - rate * (g + keep * m), lambda: fma(-rate, g + keep * m, p * shrink),
             lambda: fma(-rate, fma(keep, m, g), p * shrink), lambda: p * shrink - rate * g,
             lambda: fma(-rate, g, p * shrink))[rule]()
    elif p is not None:
        a, b, e = n[8:11]
        p = (lambda: p * shrink - rate * m * a / ((v * b).sqrt() + e),
             lambda: p * shrink - rate * (m * a / ((v * b).sqrt() + e)),
             lambda: p * shrink - rate * (m / a) / ((v / b).sqrt() + e),
             lambda: p * shrink - rate * (m / a / ((v / b).sqrt() + e)),
             lambda: p * shrink - rate * m / (v.sqrt() / b + e),
             lambda: p * shrink - rate * (m / (v.sqrt() / b + e)),
             lambda: fma(-rate, m / (v.sqrt() / b + e), p * shrink))[rule]()
    return p, m, v


def singles(data):
    return [Single(value) for value, in struct.iter_unpack("<f", data)]
