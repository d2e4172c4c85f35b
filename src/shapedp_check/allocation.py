"""A pass in which each record is placed in one of t runs: a pair that is worse, in whole numbers.

Under Q the ratios R_i = dP/dQ of the t runs are independent of mean 1, and L = log((R_1 + .. + R_t)/t), so that

    H(x) = E(R_1 + .. + R_t - t e^x)_+ / t    at every real x, in both directions.

A law of R with the same mean, all of it moved to the two grid points beside it, is larger in convex order: its H is
larger, and so is that of the sum. Places are whole multiples of a unit, 2^e units apart where they have more than m
binary digits (a number of digits chosen for each sum); masses are whole multiples of 2^-BITS, rounded up. Sums are
products of integer polynomials, one for each e. What rounding added is known in the end: the mean of the exact law
is t. Nothing of the library is used; there places follow the law and masses are floats.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

from flint import fmpz_poly

from shapedp_check.balls import Ball, ball, tick
from shapedp_check.pairs import Gaussian, Laplace, Pair, no_less

BITS = 224
_POINTS = 1 << 14
_CUT = 90  # what lies beyond the ends has a mean, or a mass, below 2^-90
_FAR = Fraction(80)  # losses of a run beyond which all is taken for infinite
Law = dict[int, int]  # masses by place


@dataclass(frozen=True)
class Spread:
    """Masses by place, and a mean that sits at infinity; `unit` is the place 1."""

    law: Law
    beyond: int  # in units, times 2^BITS
    unit: Fraction

    def plus(self, other: Spread) -> Spread:
        """The sum of two independent ones; the result is on about as many points."""
        tick()
        digits, start = self._scale(other)
        one, two = self._runs(digits, start), other._runs(digits, start)
        mass: Law = {}
        low_one: list[int] = []
        low_two: list[int] = []
        for e in range(start, max(*one, *two) + 1):
            high_one, high_two = one.get(e, []), two.get(e, [])
            first, second, low, least = (fmpz_poly(part) for part in (high_one, high_two, low_one, low_two))
            product = first * second + first * least + low * second
            for place, value in enumerate(product.coeffs()):
                if value != 0:
                    where = place << e
                    mass[where] = mass.get(where, 0) - (-int(value) >> BITS)
            low_one, low_two = _halved(_added(low_one, high_one)), _halved(_added(low_two, high_two))
        totals = sum(self.law.values()), sum(other.law.values())
        beyond = -(-(self.beyond * totals[1] + other.beyond * totals[0]) >> BITS)
        return Spread(mass, beyond, self.unit)._without_ends()

    def _scale(self, other: Spread) -> tuple[int, int]:
        """How many binary digits of a place are kept, for about `_POINTS` points; and the least e that helps."""
        lengths = [{place.bit_length() for place in law if place} for law in (self.law, other.law)]
        digits = max((_POINTS // max(min(map(len, lengths)), 1)).bit_length(), 6)
        return digits, max(*(min(found) - digits for found in lengths), 0)

    def _runs(self, digits: int, start: int) -> dict[int, list[int]]:
        """Masses by e and by place/2^e; places of few digits have the least e."""
        runs: dict[int, list[int]] = {}
        for place, value in self.law.items():
            e = max(place.bit_length() - digits, start)
            run = runs.setdefault(e, [0] * ((1 << digits) + 2))
            index, rest = place >> e, place & ((1 << e) - 1)
            run[index] += value - (value * rest >> e)
            if rest:
                run[index + 1] -= -value * rest >> e
        return runs

    def _without_ends(self) -> Spread:
        """Little mass at the bottom moves to 0 and to one place, what has little mean at the top there and beyond."""
        places, least = sorted(self.law), 1 << (BITS - _CUT)
        law, total, first = dict(self.law), 0, 0
        while first < len(places) - 1 and total + law[places[first]] <= least:
            total += law[places[first]]
            first += 1
        if first > 1:
            held = places[first]
            moment = sum(law.pop(place) * place if place else 0 for place in places[1:first])
            if places[0]:
                moment += law.pop(places[0]) * places[0]
            share = -(-moment // held)
            law[held] += share
            law[0] = max(total - moment // held, 0) + 1
        last, mean = len(places) - 1, 0
        while last > first + 1 and mean + law[places[last]] * places[last] <= least * places[first]:
            mean += law[places[last]] * places[last]
            last -= 1
        beyond, top = self.beyond, places[last]
        for place in places[last + 1 :]:
            value = law.pop(place)
            law[top] += value
            beyond += value * (place - top)
        return Spread(law, beyond, self.unit)


def _added(one: list[int], two: list[int]) -> list[int]:
    if len(one) < len(two):
        one, two = two, one
    return [*(a + b for a, b in zip(one, two, strict=False)), *one[len(two) :]]


def _halved(run: list[int]) -> list[int]:
    """On places twice as far apart: what stands between two goes to both."""
    made = [0] * (len(run) // 2 + 2) if run else []
    for index, value in enumerate(run):
        if index & 1:
            half = -(-value >> 1)
            made[index >> 1] += half
            made[(index >> 1) + 1] += half
        else:
            made[index >> 1] += value
    return made


def ratios(base: Gaussian | Laplace) -> Spread:
    """A law of e^L under Q, L the loss of the base, that is larger in convex order."""
    top, bottom = Fraction(1, 8), Fraction(1, 8)
    least = ball(1) / (1 << _CUT)
    while top < _FAR and base.hockey(ball(top)) > least:
        top *= Fraction(9, 8)
    while bottom < _FAR and base.hockey(ball(bottom)) > least:
        bottom *= Fraction(9, 8)
    high, low = int(top * 3 / 2) + 2, int(bottom * 3 / 2) + 2  # in octaves
    digits = max((_POINTS // (high + low)).bit_length(), 6)
    unit = Fraction(1, 1 << (low + digits))
    nodes = list(range(1 << digits))
    for e in range(1, high + low + 1):
        nodes += [index << e for index in range(1 << (digits - 1), 1 << digits)]
    calls = [ball(1)]
    for place in nodes[1:]:
        tick()
        calls.append(base.hockey((ball(place) * ball(unit)).log()))
    slopes = [
        (b - a) / (ball(n - m) * ball(unit)) for a, b, m, n in zip(calls, calls[1:], nodes, nodes[1:], strict=False)
    ]
    scale = ball(1 << BITS)
    law = {}
    for place, before, after in zip(nodes, [ball(-1), *slopes], [*slopes, ball(0)], strict=True):
        value = _above((after - before) * scale)
        if value:
            law[place] = value
    return Spread(law, _above(calls[-1] * scale / ball(unit)), unit)


def _above(value: Ball) -> int:
    return max(int(value.upper().ceil().unique_fmpz()), 0)


@lru_cache(8)
def summed(base: Gaussian | Laplace, count: int) -> Spread:
    """The sum of `count` independent ratios, by doubling."""
    one = ratios(base)
    total = one
    for bit in bin(count)[3:]:
        total = total.plus(total)
        if bit == "1":
            total = total.plus(one)
    return total


@dataclass(frozen=True)
class Allocated(Pair):
    """A pair that is worse than a pass of `runs` runs of `base`, each record in one of them at random."""

    base: Gaussian | Laplace
    runs: int
    symmetric = False

    @property
    def formula(self) -> str:  # type: ignore[override]
        return (
            f"each record in one of {self.runs} runs: H(x) = E(mean of {self.runs} ratios - e^x)_+; {self.base.formula}"
        )

    @cached_property
    def _sum(self) -> Spread:
        return summed(self.base, self.runs)

    @cached_property
    def _tables(self) -> tuple[list[int], list[int], list[int]]:
        """Places, and from each place on the masses and the means."""
        places = sorted(self._sum.law)
        values = [self._sum.law[place] for place in reversed(places)]
        means = [self._sum.law[place] * place for place in reversed(places)]
        return places, [*reversed(list(accumulate(values))), 0], [*reversed(list(accumulate(means))), 0]

    @cached_property
    def _excess(self) -> Ball:
        """What rounding added to the mean."""
        total = Fraction(self._tables[2][0] + self._sum.beyond, 1 << BITS) * self._sum.unit - self.runs
        return ball(max(total, Fraction(0)))

    def failure(self) -> Ball:
        return ball(Fraction(self._sum.beyond, 1 << BITS) * self._sum.unit / self.runs)

    def hockey(self, x: Ball) -> Ball:
        k = x.exp() * self.runs / ball(self._sum.unit)
        ends = [self._call(end) for end in (k.lower(), k.upper())]
        value = ends[0].union(ends[1]) * ball(self._sum.unit) / ball(self.runs << BITS)
        return no_less(x, value.union(value - self._excess / self.runs))

    def _call(self, k: Ball) -> Ball:
        """The mean of (sum - k)_+, k in units: the largest over all suffixes of mean - k mass."""
        places, masses, means = self._tables
        near = bisect_right(places, int(k.mid().floor().unique_fmpz()))
        found = ball(0)
        for index in range(max(near - 1, 0), min(near + 2, len(places) + 1)):
            found = found.max(ball(means[index]) - k * masses[index])
        return found + self._sum.beyond

    def backward(self) -> Pair:
        return AllocatedBack(self)


@dataclass(frozen=True)
class AllocatedBack(Pair):
    """(Q, P) of such a pair: what Q has where all ratios are 0 is lost."""

    pair: Allocated
    symmetric = False

    @property
    def formula(self) -> str:  # type: ignore[override]
        return self.pair.formula

    def failure(self) -> Ball:
        return ball(Fraction(self.pair._sum.law.get(0, 0), 1 << BITS))

    def hockey(self, x: Ball) -> Ball:
        return no_less(x, 1 - x.exp() * (1 - self.pair.hockey(-x)))

    def backward(self) -> Pair:
        return self.pair
