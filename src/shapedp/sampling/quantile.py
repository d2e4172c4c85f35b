"""Symmetric laws by their quantile function: fast in float64, exact in integers of any length."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from shapedp.numerics.arrays import Floats

Enclosure = tuple[int, int]

_GUARD = 64


class Quantile(Protocol):
    """A standard symmetric law, seen through the magnitude X = -q(u) of its draws, u uniform on (0, 1/2).

    Guarantee: `magnitude` errs by at most 2^-44 for u in [2^-24, 1/2], beyond the effect of rounding u;
    |du| <= r u moves X by at most 1.27 r for r <= 2^-38; `tail` is exact.

    Example:
        >>> GAUSSIAN.name, LAPLACE.tail(Fraction(1), 8)  # 2^8 e^-1/2 = 47.09
        ('gaussian', (47, 48))
    """

    @property
    def name(self) -> str:
        """The law's name."""

    def magnitude(self, u: Floats) -> None:
        """Replace u in place by -X or X (the sign is the caller's)."""

    def tail(self, bound: Fraction, bits: int) -> Enclosure:
        """Return integers lo <= 2^bits P(noise > bound) <= hi, hi - lo <= 2, for bound > 0."""


@dataclass(frozen=True)
class Gaussian:
    """The standard normal law.

    Guarantee: X = -Phi^-1(u). A relative change r of u moves X by r Q(X)/phi(X) <= r sqrt(pi/2) (Mills).
    Reference: Gordon (1941), Mills' ratio; Marsaglia (2004), positive series of Phi.
    """

    name: str = "gaussian"

    def magnitude(self, u: Floats) -> None:
        """Replace u in place by Phi^-1(u)."""
        ndtri(u, out=u)

    def tail(self, bound: Fraction, bits: int) -> Enclosure:
        """Return integers lo <= 2^bits Q(bound) <= hi, hi - lo <= 2.

        Guarantee: Q = 1/2 - S exp(-b^2/2)/sqrt(2 pi), S = sum b^(2n+1)/(2n+1)!!, every step rounded outward.
        """
        square = bound * bound
        if 18 * square > 25 * bits:  # Q(b) <= exp(-b^2/2)/2 < 2^-(18 b^2/25)
            return 0, 1
        work = bits + _GUARD
        series_lo, series_hi = _odd_series(bound, work)
        exp_lo, exp_hi = exponential(square / 2, work)
        root_lo, root_hi = _root_two_pi(work)
        one, half = 1 << (bits + work), 1 << (bits - 1)
        lo = half - _ceil(series_hi * one, exp_lo * root_lo)
        hi = half - series_lo * one // (exp_hi * root_hi)
        return lo, hi


@dataclass(frozen=True)
class Laplace:
    """The Laplace law of density exp(-|x|)/2.

    Guarantee: X = -log(2u). A relative change r of u moves X by at most r (1 + r).
    """

    name: str = "laplace"

    def magnitude(self, u: Floats) -> None:
        """Replace u in place by log(2u)."""
        np.multiply(u, 2.0, out=u)
        np.log(u, out=u)

    def tail(self, bound: Fraction, bits: int) -> Enclosure:
        """Return integers lo <= 2^bits exp(-bound)/2 <= hi, hi - lo <= 2.

        Guarantee: every step rounded outward.
        """
        if 7 * bound > 5 * bits:  # exp(-b)/2 < 2^-(7 b/5)
            return 0, 1
        work = bits + _GUARD
        exp_lo, exp_hi = exponential(bound, work)
        one = 1 << (bits - 1 + work)
        return one // exp_hi, _ceil(one, exp_lo)


GAUSSIAN = Gaussian()
LAPLACE = Laplace()
QUANTILES: dict[str, Quantile] = {law.name: law for law in (GAUSSIAN, LAPLACE)}


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def exponential(x: Fraction, work: int) -> Enclosure:
    """Return integers enclosing 2^work exp(x), x >= 0: Taylor on x/2^h <= 2^-8, then h squarings."""
    halvings = int(x).bit_length() + 8
    fine = work + halvings
    y = (x.numerator << fine) // (x.denominator << halvings)
    lo = hi = term_lo = term_hi = 1 << fine
    n = 0
    while term_hi > 1:
        n += 1
        term_lo = (term_lo * y >> fine) // n
        term_hi = _ceil(term_hi * (y + 1), n << fine)
        lo, hi = lo + term_lo, hi + term_hi
    hi += 1  # the terms left out sum to less than the last one kept
    for _ in range(halvings):
        lo, hi = lo * lo >> fine, _ceil(hi * hi, 1 << fine)
    return lo >> halvings, _ceil(hi, 1 << halvings)


def _odd_series(x: Fraction, work: int) -> Enclosure:
    """Return integers enclosing 2^work sum_n x^(2n+1)/(2n+1)!!, x >= 0."""
    lo = term_lo = (x.numerator << work) // x.denominator
    hi = term_hi = term_lo + 1
    square = x * x
    square_lo = (square.numerator << work) // square.denominator
    square_hi = square_lo + 1
    n = 1
    while term_hi > 1 or n * (1 << work) < 2 * square_hi:
        n += 2
        term_lo = (term_lo * square_lo >> work) // n
        term_hi = _ceil(term_hi * square_hi, n << work)
        lo, hi = lo + term_lo, hi + term_hi
    return lo, hi + 1  # the ratio of terms is below 1/2: those left out sum to less than the last kept


@cache
def _root_two_pi(work: int) -> Enclosure:
    """Return integers enclosing 2^work sqrt(2 pi), by Machin's formula."""
    fine = work + 16

    def arctan(inverse: int) -> Enclosure:
        total = power = (1 << fine) // inverse
        n, sign = 1, 1
        while power:
            power //= inverse * inverse
            n, sign = n + 2, -sign
            total += sign * (power // n)
        return total - n, total + n  # each term is off by less than 2

    five_lo, five_hi = arctan(5)
    long_lo, long_hi = arctan(239)
    pi_lo, pi_hi = 16 * five_lo - 4 * long_hi, 16 * five_hi - 4 * long_lo
    scale = 2 * work - fine
    return isqrt(2 * pi_lo << scale), isqrt(2 * pi_hi << scale) + 1
