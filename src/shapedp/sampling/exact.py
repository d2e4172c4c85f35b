"""Exact decisions about one draw whose uniform is known to as many bits as it takes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .quantile import Quantile
from .sources import Source


@dataclass
class LazyUniform:
    """A uniform real of [numerator, numerator + 1) 2^-bits whose further bits are drawn when asked for.

    Guarantee: answers are those of one fixed real number, whatever their order.
    """

    numerator: int
    bits: int
    source: Source

    def magnitude_exceeds(self, bound: Fraction, law: Quantile) -> bool:
        """Return whether the magnitude -q(u) exceeds `bound`, that is u < P(noise > bound).

        Guarantee: exact; ends with probability one.
        """
        if bound <= 0:
            return True
        while True:
            lo, hi = law.tail(bound, self.bits)
            if self.numerator >= hi:
                return False
            if self.numerator < lo:
                return True
            self.numerator = (self.numerator << 64) | int(self.source.words(1)[0])
            self.bits += 64


def nearest(x: float, scale: float, grid: float, word: int, start: int, law: Quantile, source: Source) -> int:
    """Return the integer nearest to (x + scale * noise) / grid, the noise given by a signed 64-bit word.

    Guarantee: exact for every x, scale > 0 and grid > 0; `start` is a guess and only costs time.
    """
    sign = 1 if word >= 0 else -1
    uniform = LazyUniform(word if word >= 0 else ~word, 64, source)
    offset = sign * Fraction(x) / Fraction(grid)
    ratio = Fraction(scale) / Fraction(grid)

    def above(j: int) -> bool:
        return uniform.magnitude_exceeds((j + Fraction(1, 2) - offset) / ratio, law)

    low = high = sign * start
    step = 1
    if above(low):
        high = low + step
        while above(high):
            low, step = high, 2 * step
            high = low + step
    else:
        low = high - step
        while not above(low):
            high, step = low, 2 * step
            low = high - step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return sign * high
