"""Sums with a bound on their rounding error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import nonnegative, numeric
from shapedp.numerics.outward import ABOVE_WIDER, ROUNDINGS_8192, UNIT

_FSUM_LIMIT = 4096


def sum_bounds(terms: NDArray[np.float64], relative_error: float = 0.0) -> tuple[float, float]:
    """Bounds on the sum of real numbers, each known to `relative_error`, given as floats.

    Guarantee: lower <= exact sum <= upper. Short sums are rounded once (Shewchuk); long ones use pairwise
    summation, whose error is at most (2 + log2 n) UNIT/(1 - ...) times the sum of magnitudes within blocks of
    128 added naively (Higham 2002, section 4.2): 160 UNIT covers every n below 2^30.

    Parameters: the numbers, and a bound on the relative error of each.
    Returns: a lower and an upper bound.

    Example:
        >>> low, high = sum_bounds(np.array([0.1, 0.2, 0.3]))
        >>> low < 0.6 < high
        True
    """
    terms = np.ascontiguousarray(numeric("terms", terms), dtype=np.float64)
    relative_error = nonnegative("relative_error", relative_error)
    short = terms.size <= _FSUM_LIMIT
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(terms.sum())
        magnitude = total if not terms.size or terms.min() >= 0 else float(np.abs(terms).sum())
    if not math.isfinite(magnitude):
        if not np.isfinite(terms).all():
            raise ValueError("terms must be finite")
        least = np.finfo(np.float64).max * (1 - ROUNDINGS_8192 - 2 * relative_error)
        return (float(least) if terms.min() >= 0 else -math.inf), math.inf
    if magnitude == 0:
        return 0.0, 0.0
    total, slack = (math.fsum(terms), UNIT) if short else (total, 160 * UNIT)
    error = magnitude * (slack + relative_error) * ABOVE_WIDER
    return math.nextafter(total - error, -math.inf), math.nextafter(total + error, math.inf)


def dot(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """The sum of x_i y_i in the calling thread: BLAS wakes others for long arrays, and waits where cores are busy."""
    return float(np.einsum("i,i->", x, y))
