"""The profile of a few Laplace coordinates by nested quadrature in mpmath: an oracle that shares no code."""

from __future__ import annotations

from collections.abc import Sequence

import mpmath as mp


def delta(ratios: Sequence[float], epsilon: float, digits: int = 25) -> mp.mpf:
    """E[(1 - e^(epsilon - L))_+], L the sum of the coordinates' losses.

    One coordinate of ratio a has L = a with probability 1/2, L = -a with probability e^-a/2 and the density
    e^((x - a)/2)/4 between.
    """
    with mp.workdps(digits):
        return +_tail([mp.mpf(a) for a in ratios], mp.mpf(epsilon))


def _tail(ratios: list[mp.mpf], epsilon: mp.mpf) -> mp.mpf:
    a, rest = ratios[0], ratios[1:]
    if not rest:
        if epsilon >= a:
            return mp.mpf(0)
        return -mp.expm1(epsilon) if epsilon <= -a else -mp.expm1((epsilon - a) / 2)
    total = sum(rest)
    # The tail of the rest changes form where epsilon - x meets a sum of +- its ratios.
    kinks = {epsilon - s for s in _signed(rest)} | {epsilon - total, epsilon + total}
    points = [-a, *sorted(x for x in kinks if -a < x < a), a]
    inner = mp.quad(lambda x: mp.exp((x - a) / 2) / 4 * _tail(rest, epsilon - x), points)
    return _tail(rest, epsilon - a) / 2 + mp.exp(-a) / 2 * _tail(rest, epsilon + a) + inner


def _signed(ratios: list[mp.mpf]) -> list[mp.mpf]:
    sums = [mp.mpf(0)]
    for a in ratios:
        sums = [s + sign * a for s in sums for sign in (-1, 1)]
    return sums
