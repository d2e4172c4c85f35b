"""Exact choices in integer arithmetic: which candidate wins, and coins of probabilities known to any precision.

No float takes part. A probability that involves e is enclosed between two integers over 2^bits; a draw that falls
between the two ends is decided with more bits. So every choice has exactly the probability stated, given uniform bits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction

from .sources import Source

_WORD = 64
_BATCH = 32  # words fetched at once
_FIRST_BITS = 128
_MOST_BITS = 1 << 16  # reached with probability below 2^-60000 only
_GUARD = 32
_FAR = 1 << 30  # e^-x of a larger x is below every precision used here


class Bits:
    """Uniform bits of a source, handed out in integers of any size."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._words: list[int] = []

    def word(self) -> int:
        """64 uniform bits."""
        if not self._words:
            self._words = self._source.words(_BATCH).tolist()
        return self._words.pop()

    def below(self, bound: int) -> int:
        """A uniform integer of [0, bound)."""
        size = bound.bit_length()
        while True:
            value = 0
            for _ in range(-(-size // _WORD)):
                value = value << _WORD | self.word()
            value >>= -size % _WORD
            if value < bound:
                return value

    def coin(self, numerator: int, denominator: int) -> bool:
        """True with probability e^(-numerator/denominator).

        Reference: Canonne, Kamath, Steinke (2020), Algorithm 1.
        """
        whole, rest = divmod(numerator, denominator)
        return all(self._fraction(1, 1) for _ in range(min(whole, _FAR))) and self._fraction(rest, denominator)

    def _fraction(self, numerator: int, denominator: int) -> bool:
        turn = 1
        while self.below(denominator * turn) < numerator:
            turn += 1
        return turn % 2 == 1

    def laplace(self, rate: Fraction) -> int:
        """An integer k with probability proportional to e^(-rate |k|).

        Reference: Canonne, Kamath, Steinke (2020), Algorithm 2.
        """
        while True:
            rest = self.below(rate.denominator)
            if not self.coin(rest, rate.denominator):
                continue
            whole = 0
            while self.coin(1, 1):
                whole += 1
            size = (rest + rate.denominator * whole) // rate.numerator
            negative = self.word() & 1
            if size or not negative:
                return -size if negative else size


def exponential_ends(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits e^-exponent <= high, a few units apart, for an exponent >= 0."""
    if exponent >= _FAR:
        return 0, 1
    halvings = max(int(2 * exponent).bit_length(), 0)
    work = bits + halvings + 16
    small = exponent / (1 << halvings)  # at most 1/2
    low, term, turn = 1 << work, 1 << work, 0
    while term:
        turn += 1
        term = term * small.numerator // (small.denominator * turn)
        low += term
    high = low + 2 * turn + 2  # each term is short by less than a unit and what it passes on, the rest by one more
    one = 1 << (2 * work)
    low, high = one // high, -(-one // low)
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    return low >> (work - bits), -(-high >> (work - bits))


def decided(ends: Callable[[int], tuple[int, int]], bits: Bits) -> bool:
    """True with probability p, where ends(b) encloses 2^b p between two integers.

    Guarantee: exact; ends with probability one.
    """
    return decided_from(0, 0, ends, bits)


def decided_from(value: int, size: int, ends: Callable[[int], tuple[int, int]], bits: Bits) -> bool:
    """Whether a uniform number of [0, 1), whose first `size` bits are `value`, lies below p; see `decided`."""
    while size <= _MOST_BITS:
        for _ in range(max(size, _FIRST_BITS) // _WORD):
            value, size = value << _WORD | bits.word(), size + _WORD
        low, high = ends(size)
        if value < low:
            return True
        if value >= high:
            return False
    raise OverflowError("the source repeated an event of probability below 2^-60000: it is not random")


def exponential_choice(gaps: Sequence[int], counts: Sequence[int], rate: Fraction, bits: Bits) -> int:
    """The place i drawn with probability proportional to counts[i] e^(-rate gaps[i]).

    `gaps` are distinct integers >= 0 in rising order, the first of them 0; `counts` integers >= 1.

    Guarantee: exact; ends with probability one.
    """
    value = size = 0
    while size <= _MOST_BITS:
        for _ in range(max(size, _FIRST_BITS) // _WORD):
            value, size = value << _WORD | bits.word(), size + _WORD
        lows, highs = _running(gaps, counts, rate, size)
        place = bisect_left(lows, -(-(value + 1) * highs[-1] >> size))
        if place < len(lows) and (not place or highs[place - 1] << size <= value * lows[-1]):
            return place
    raise OverflowError("the source repeated an event of probability below 2^-60000: it is not random")


def _running(gaps: Sequence[int], counts: Sequence[int], rate: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Ends of the running sums of counts e^(-rate gaps), in one unit; the last entry is the whole sum.

    Where weights fall below 2^-bits the rest counts as nothing from below, and from above each as much as the last.
    """
    spare = _GUARD + (rate.denominator // rate.numerator).bit_length()  # roundings upward must not stop the fall
    work = bits + spare
    low = high = 1 << work
    lows, highs = [counts[0] * low], [counts[0] * high]
    steps: dict[int, tuple[int, int]] = {}
    for place in range(1, len(gaps)):
        apart = gaps[place] - gaps[place - 1]
        if apart not in steps:
            steps[apart] = exponential_ends(rate * apart, work)
        fall = steps[apart]
        low, high = low * fall[0] >> work, -(-high * fall[1] >> work)
        if not high >> spare:
            lows.append(lows[-1])
            highs.append(highs[-1] + sum(counts[place:]) * high)
            break
        lows.append(lows[-1] + counts[place] * low)
        highs.append(highs[-1] + counts[place] * high)
    return lows, highs
