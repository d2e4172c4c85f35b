"""Composition on a grid of losses, in whole numbers.

Upper end. On the grid x_j = j h join the points (e^(x_j), H(x_j)) of a convex curve by straight lines: the polygon lies
above the curve, so it belongs to a worse pair, and that pair has all its losses on the grid ("connect the dots",
Doroshenko et al. 2022, Theorem 3.3). Its mass under P at x_j is e^(x_j) times the change of slope there, rounded up
to a multiple of 2^-bits. Losses add under composition, so masses convolve: one product of integer polynomials.
Mass that is cut off at the top is counted as a loss of infinity, mass cut off at the bottom moves up to the lowest
place kept. Every rounding is upward, and what all of them added is known in the end: the masses of the exact polygon
sum to one, so the `excess` is the sum less one.

Lower end. A convex curve lies above the prolonged neighbouring chords. Hence for each grid interval there is a shift
s of the polygon, Polygon(x + s) <= H(x), found and proved interval by interval in `_shifts`; h itself always is one,
since Polygon(x + h) <= H(next grid point) <= H(x). A shifted polygon is the same law with every loss s smaller, and so
its n-fold composition is the composed polygon at x + n s:

    D(epsilon + sum n_i s_i) - excess - doubt <= delta(epsilon) <= D(epsilon) + mass at infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import fmpz, fmpz_poly

from shapedp_check.balls import Ball, TooLarge, ball, precision, tick, up
from shapedp_check.pairs import Pair

Counted = tuple[Pair, int]
_MOST_POINTS = 1 << 21
_GUARD = 96  # bits for the cancellation in second differences


@dataclass(frozen=True)
class Masses:
    """mass[i] 2^-bits at the loss (first + i) h, `infinity` at infinity; `doubt` was moved up from below."""

    mass: fmpz_poly
    first: int
    infinity: int
    doubt: int
    bits: int
    shift: Fraction = Fraction(0)  # each loss may be smaller by this

    @property
    def finite(self) -> int:
        """All the mass at finite losses."""
        return int(self.mass(1)) if len(self.mass) else 0

    def times(self, other: Masses, cut: int) -> Masses:
        """Both, independently."""
        tick()
        if len(self.mass) + len(other.mass) > _MOST_POINTS:
            raise TooLarge("the composed losses need too many points")
        one, two, bits = self.finite, other.finite, self.bits
        coefficients = [-((-c) >> bits) for c in (self.mass * other.mass).coeffs()]
        infinity = -(-(self.infinity * (two + other.infinity) + one * other.infinity) >> bits)
        doubt = -(-(self.doubt * (two + other.infinity) + other.doubt * (one + self.infinity)) >> bits)
        made = _trimmed(coefficients, self.first + other.first, bits, cut)
        return replace(
            made,
            infinity=made.infinity + infinity,
            doubt=made.doubt + doubt,
            shift=self.shift + other.shift,
        )

    def power(self, count: int, cut: int) -> Masses:
        """`count` independent copies, by squaring."""
        result, square = None, self
        while True:
            if count & 1:
                result = square if result is None else result.times(square, cut)
            count >>= 1
            if not count:
                assert result is not None
                return result
            square = square.times(square, cut)

    def above(self, x: Fraction, h: Fraction) -> Ball:
        """D(x): the sum of mass (1 - e^(x - loss)) over finite losses above x."""
        start = max(int(x // h) + 1 - self.first, 0)
        kept = fmpz_poly(self.mass.coeffs()[start:])
        if not len(kept):
            return ball(0)
        decay = (x_ball := ball(-h)).exp()
        lead = (ball(x) + x_ball * (self.first + start)).exp()
        return (ball(int(kept(1))) - lead * _horner(kept, decay)) / ball(1 << self.bits)


def _horner(poly: fmpz_poly, at: Ball) -> Ball:
    value = ball(0)
    for coefficient in reversed(poly.coeffs()):
        value = value * at + coefficient
    return value


def _trimmed(mass: Sequence[fmpz | int], first: int, bits: int, cut: int) -> Masses:
    """Ends whose mass together is below 2^(bits - cut) cut off: upward to the lowest place kept, or to infinity."""
    least = 1 << max(bits - cut, 0)
    low, moved = 0, 0
    while low < len(mass) - 1 and moved + mass[low] <= least:
        moved += int(mass[low])
        low += 1
    high, lost = len(mass), 0
    while high > low + 1 and lost + mass[high - 1] <= least:
        high -= 1
        lost += int(mass[high])
    kept = list(mass[low:high])
    kept[0] += moved
    return Masses(fmpz_poly(kept), first + low, lost, moved, bits)


def discretised(pair: Pair, h: Fraction, bits: int, cut: int) -> tuple[Masses, Masses]:
    """A law below and a law above a pair, both without what the pair puts at infinity by itself."""
    low, high = loss_range(pair, cut)
    start, end = int(low // h), -int(-high // h)
    if end - start > _MOST_POINTS:
        raise TooLarge(f"{end - start} grid points")
    step = ball(h)
    with precision(bits + _GUARD):
        rest = 1 - pair.failure()
        places = [(step * j) for j in range(start, end + 1)]
        k = [ball(0), *(place.exp() for place in places)]
        curve = [rest, *(_ticked(pair, place) - pair.failure() for place in places)]
        slopes = [(curve[i + 1] - curve[i]) / (k[i + 1] - k[i]) for i in range(len(k) - 1)]
        scale = ball(1 << bits)
        mass = [_ceiling(k[i] * (after - slopes[i - 1]) * scale) for i, after in enumerate([*slopes[1:], ball(0)], 1)]
        moved, shift = _lowered(mass, _shifts(k, curve, slopes, h), h)
        beyond = _ceiling(curve[-1] * scale)
    upper = _trimmed(mass, start, bits, cut)
    upper = replace(upper, infinity=upper.infinity + beyond, shift=shift)
    if moved is mass:
        return upper, upper
    lower = _trimmed(moved, start, bits, cut)
    return replace(lower, infinity=lower.infinity + beyond, shift=shift), upper


def _ticked(pair: Pair, place: Ball) -> Ball:
    tick()
    return pair.hockey(place)


def _ceiling(value: Ball) -> int:
    top = value.upper().ceil().unique_fmpz() if value.is_finite() else None
    if top is None:
        raise TooLarge("the curve could not be evaluated")
    return max(int(top), 0)


def _shifts(k: list[Ball], curve: list[Ball], slopes: list[Ball], h: Fraction) -> list[float]:
    """For each interval the least s (up to rounding, at most h) with the polygon at x + s below the curve at x.

    Between k[i] and k[i + 1] the curve is above both prolonged neighbours (left of the first point above 1 - k, right
    of the last above its last value). The polygon is convex: it is below their maximum on the interval once it is below
    both at one point m, best where they meet. There s = log(k*/m), where the polygon comes down to their height at k*.
    """
    most, near = up(ball(h)), ball(1) / (1 << 60)
    result = []
    for i, slope in enumerate(slopes):
        before = slopes[i - 1] if i else ball(-1)
        after = slopes[i + 1] if i + 1 < len(slopes) else ball(0)
        meet = (curve[i + 1] - curve[i] + before * k[i] - after * k[i + 1]) / (before - after)
        middle = meet if meet.is_finite() else (k[i] + k[i + 1]) / 2
        middle = middle.max(k[i] * (1 + near)).min(k[i + 1] * (1 - near)).mid()
        height = (curve[i] + before * (middle - k[i])).min(curve[i + 1] + after * (middle - k[i + 1]))
        reached = k[i] + (curve[i] - height) / -slope if slope < 0 else 2 * k[i + 1]
        good = k[i] <= middle <= k[i + 1] and reached <= k[i + 1]
        if i + 1 == len(slopes):  # beyond its end the finite losses end, and only they count for the lower end
            middle = (middle * (1 - near)).mid()  # a little left of the meeting: the chord before is not below 0 there
            good = k[i] <= middle <= k[i + 1] and curve[i] + before * (middle - k[i]) >= 0
            reached = k[i + 1]
        result.append(min(up((reached / middle).log()), most) if good else most)
    return result


def _lowered(masses: list[int], shifts: list[float], h: Fraction) -> tuple[list[int], Fraction]:
    """Masses and shift of a law below the curve: the losses at the top move down by h, all others by one small s.

    Where a curve ends steeply s is as large as h, but little mass is there. masses[i] stands at the right end of
    interval i. Cut at the right end of an interval: move the masses above it by h and the others by the largest s of
    the intervals below. Right of the cut only the upper masses count, and the polygon moved by h is below the curve;
    left of it all together are below the polygon moved by s. The cut with the least mean shift is taken.
    """
    whole, below, largest = max(sum(masses), 1), 0, 0.0
    best, place, shift = up(ball(h)), 0, up(ball(h))
    for i, mass in enumerate(masses):
        largest, below = max(largest, shifts[i]), below + mass
        cost = largest + up(ball(h)) * ((whole - below) / whole)
        if cost < best:
            best, place, shift = cost, i + 1, largest
    if place in (0, len(masses)):
        return masses, Fraction(shift)
    moved = masses[:place] + [0] * (len(masses) - place)
    for i in range(place, len(masses)):
        moved[i - 1] += masses[i]
    return moved, Fraction(shift)


def loss_range(pair: Pair, cut: int) -> tuple[Fraction, Fraction]:
    """Losses between which all but 2^-cut of each law lies."""
    return -_end(pair.backward(), cut), _end(pair, cut)


def _end(pair: Pair, cut: int) -> Fraction:
    """A place beyond which the curve is below 2^-cut, but for what the pair has at infinity."""
    least, rest = ball(1) / (1 << cut), pair.failure()
    top = pair.top
    most = top if top is None or isinstance(top, Fraction) else Fraction(up(top))
    low, high = Fraction(0), Fraction(1, 1 << 20)
    while not pair.hockey(ball(high)) - rest < least:
        low, high = high, 2 * high
        if most is not None and high >= most:
            return most
        if high > 1 << 20:
            raise TooLarge("losses beyond a million")
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (low, middle) if pair.hockey(ball(middle)) - rest < least else (middle, high)
    return min(high, most) if most is not None else high


def spread(pair: Pair, cut: int) -> float:
    """About the standard deviation of the loss under P; it only chooses the grid."""
    low, high = loss_range(pair, min(cut, 60))
    width = (high - low) / 200
    if not width:
        return 0.0
    masses = discretised(pair, width, 64, 50)[1]
    values = [float(int(c)) * 2.0**-64 for c in masses.mass.coeffs()]
    places = [(masses.first + i) * float(width) for i in range(len(values))]
    mean = sum(p * x for p, x in zip(values, places, strict=True))
    return float(sum(p * (x - mean) ** 2 for p, x in zip(values, places, strict=True)) ** 0.5)


def grid(items: Sequence[Counted], points: int, cut: int) -> Fraction:
    """A step that spreads `points` points over the composed loss; on the pairs' own unit where they share one."""
    spreads = [spread(pair, cut) for pair, _ in items]
    deviation = sum(count * one**2 for one, (_, count) in zip(spreads, items, strict=True)) ** 0.5
    aim = Fraction(max(min(24 * deviation / points, max(spreads) / 8), 2.0**-60))
    units = {pair.unit for pair, _ in items}
    unit = units.pop() if len(units) == 1 else None
    if unit is not None:
        return unit / max(-(-unit // aim), 1)
    step = Fraction(1)
    while step > aim:
        step /= 2
    while 2 * step <= aim:
        step *= 2
    return step


def composed(items: Sequence[Counted], epsilon: Fraction, points: int, cut: int) -> tuple[Ball, Ball]:
    """(lower, upper) ends of H(epsilon) of all pairs together, each as often as counted, in this direction."""
    bits = cut + 64
    h = grid(items, points, cut)
    made = [discretised(pair, h, bits, cut) for pair, _ in items]
    counts = [count for _, count in items]
    above = _product([both[1] for both in made], counts, cut)
    same = all(low is high for low, high in made)
    below = above if same else _product([both[0] for both in made], counts, cut)
    kept = ball(1)
    for pair, count in items:
        kept *= (1 - pair.failure()) ** count
    one = ball(1 << bits)
    high = above.above(epsilon, h) + ball(above.infinity) / one
    excess = ball(below.finite + below.infinity + below.doubt) / one - kept
    low = below.above(epsilon + below.shift, h) - excess
    return 1 - kept + low.max(ball(0)), (1 - kept + high).min(ball(1))


def _product(laws: list[Masses], counts: list[int], cut: int) -> Masses:
    """All laws, each as often as counted; the smallest are multiplied first."""
    powers = [law.power(count, cut) for law, count in zip(laws, counts, strict=True)]
    while len(powers) > 1:
        powers.sort(key=lambda law: len(law.mass), reverse=True)
        one, two = powers.pop(), powers.pop()
        powers.append(one.times(two, cut))
    return powers[0]
