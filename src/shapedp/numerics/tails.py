"""Tails of the normal and Laplace distributions, in log space where they vanish."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT1_2 = math.sqrt(0.5)
_SQRT_PI_2 = math.sqrt(math.pi / 2)


def normal_log_density(x: Any) -> Any:
    """log phi(x)."""
    return -0.5 * np.square(x) - LOG_SQRT_2PI


def normal_log_tail(x: Any) -> Any:
    """log P(N >= x), accurate for x up to 1e150."""
    return special.log_ndtr(-np.asarray(x, dtype=np.float64))


def mills(x: Any) -> Any:
    """P(N >= x)/phi(x); overflows below x = -37."""
    return _SQRT_PI_2 * special.erfcx(x * _SQRT1_2)


def laplace_log_tail(x: Any) -> Any:
    """log P(X >= x) of the standard Laplace law."""
    x = np.asarray(x, dtype=np.float64)
    above = np.maximum(x, 0.0)
    below = np.minimum(x, 0.0)
    return np.where(x >= 0, -math.log(2) - above, np.log1p(-0.5 * np.exp(below)))


def log1mexp(x: Any) -> Any:
    """log(1 - e^x) for x <= 0, without cancellation at either end.

    Reference: Maechler 2012, Accurately computing log(1 - exp(-|a|)).
    """
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.where(x > -math.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_difference(larger: Any, smaller: Any) -> Any:
    """log(e^larger - e^smaller) for larger >= smaller."""
    larger = np.asarray(larger, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isneginf(larger), 0.0, np.asarray(smaller, dtype=np.float64) - larger)
    return larger + log1mexp(gap)
