"""Sums with a bound on their rounding error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-53
_FSUM_LIMIT = 4096


def sum_bounds(terms: NDArray[np.float64], relative_error: float = 0.0) -> tuple[float, float]:
    """Bounds on the sum of real numbers, each known to `relative_error`, given as floats.

    Guarantee: lower <= exact sum <= upper. Short sums are rounded once (Shewchuk); long ones use pairwise
    summation, whose error is at most (2 + log2 n) UNIT/(1 - ...) times the sum of magnitudes within blocks of
    128 added naively (Higham 2002, section 4.2): 160 UNIT covers every n below 2^30.
    """
    terms = np.ascontiguousarray(terms, dtype=np.float64)
    if not np.isfinite(terms).all():
        raise ValueError("terms must be finite")
    if terms.size <= _FSUM_LIMIT:
        total, slack = math.fsum(terms), UNIT
    else:
        total, slack = float(terms.sum()), 160 * UNIT
    magnitude = total if terms.size and terms.min() >= 0 else float(np.abs(terms).sum())
    error = magnitude * (slack + relative_error) * (1 + 2.0**-20) + (5e-324 if magnitude else 0.0)
    return total - error, total + error
