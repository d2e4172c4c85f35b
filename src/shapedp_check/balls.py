"""Numbers with proved error bounds.

An Arb ball is a midpoint and a radius; every operation returns a ball that contains the exact result. So nothing in
this package is approximate: a wide ball is possible, a wrong one is not. Files hold floats, and a float is an exact
number; `exact` keeps it as a fraction.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

Ball = Any  # flint.arb; the extension module carries no types
BITS = 256  # working precision
_MOST_BITS = 1 << 14
_SUM_SLACK = 2.0**-48
_END: ContextVar[float] = ContextVar("_END", default=math.inf)


class TooLarge(ValueError):
    """What is asked would take too many points or too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Inside the block `tick` raises once so many seconds have passed."""
    token = _END.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _END.reset(token)


def tick() -> None:
    """Called in every long loop, so that no file takes longer than allowed."""
    if time.monotonic() > _END.get():
        raise TooLarge("it takes longer than allowed")


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with `bits` bits inside the block."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Any) -> Ball:
    """The ball of an exact number: an integer, a float or a fraction."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def exact(value: float | int | Fraction) -> Fraction:
    """The fraction that a number of the file is."""
    return Fraction(value)


def between(low: Ball, high: Ball) -> Ball:
    """The ball that holds both of two balls and all numbers between them."""
    return low.union(high)


def down(value: Ball) -> float:
    """A float at most every number of the ball, not below zero: for probabilities."""
    low = value.lower()
    if not low > 0:
        return 0.0
    number = float(low.mid())
    while number > 0 and not ball(number) <= low:
        number = math.nextafter(number, 0.0)
    return number


def up(value: Ball) -> float:
    """A float at least every number of the ball; infinity where nothing is known."""
    high = value.upper()
    if high.is_nan():
        return math.inf
    if not high > 0:
        return 0.0
    number = float(high.mid())
    while not ball(number) >= high:
        number = math.nextafter(number, math.inf)
    return number


def sharp(compute: Callable[[], Ball], bits: int = 40) -> Ball:
    """A ball good to `bits` bits where more precision can give that (cancellation is met with more digits).

    Where the radius stays as it was, it comes from what went in, and more digits would only cost time.
    """
    used, radius = ctx.prec, arb.pos_inf()
    while True:
        tick()
        with precision(used):
            value = compute()
        if value.is_finite() and (value.rel_accuracy_bits() >= bits or value.is_zero()):
            return value
        if used >= _MOST_BITS or (value.is_finite() and value.rad() * 256 > radius):
            return value
        used, radius = 4 * used, value.rad()


def normal_cdf(x: Ball) -> Ball:
    """Phi(x) = erfc(-x/sqrt 2)/2."""
    return (-x / ball(2).sqrt()).erfc() / 2


def total(terms: Iterable[tuple[float | Fraction, float]], power: int) -> Ball:
    """sum (l/s)^power over pairs (l, s): 0/0 counts 0, and x/0 infinity.

    In floats where that is safe: each term is off by less than 2^-50 of itself, and `math.fsum` rounds only once.
    """
    pairs = [(top, bottom) for top, bottom in terms if top != 0]
    if any(bottom == 0 for _, bottom in pairs):
        return arb.pos_inf()
    plain = len(pairs) > 64 and all(isinstance(top, float) for top, _ in pairs)
    ratios = [float(top) / bottom for top, bottom in pairs] if plain else []
    if plain and all(1e-140 < ratio < 1e140 for ratio in ratios):
        value = ball(math.fsum(ratio**power for ratio in ratios))
        return value * between(ball(1 - _SUM_SLACK), ball(1 + _SUM_SLACK))
    result = ball(0)
    for top, bottom in pairs:
        result += (ball(top) / ball(bottom)) ** power
    return result
