"""Tails of the normal and Laplace distributions, in log space where they vanish."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import numeric

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT1_2 = math.sqrt(0.5)
_SQRT_PI_2 = math.sqrt(math.pi / 2)


def _known(*values: Any) -> list[Floats]:
    """Arrays of floats; a NaN among them is refused: it would come back as if it were a probability."""
    found = [
        one if type(one) is np.ndarray and one.dtype == np.float64 else np.asarray(numeric("x", one), dtype=np.float64)
        for one in values
    ]
    if any(np.isnan(one).any() for one in found):
        raise ValueError("x must hold numbers: one of them is NaN")
    return found


def normal_log_density(x: Any) -> Any:
    """log phi(x).

    Parameters: a number or an array.
    Returns: log phi, in the same shape.

    Example:
        >>> round(float(normal_log_density(0.0)), 6)
        -0.918939
    """
    (x,) = _known(x)
    return -0.5 * np.square(x) - LOG_SQRT_2PI


def normal_log_tail(x: Any) -> Any:
    """log P(N >= x), accurate for x up to 1e150.

    Parameters: a number or an array.
    Returns: the logarithm of the tail, in the same shape.

    Example:
        >>> round(float(normal_log_tail(0.0)), 6)  # log(1/2)
        -0.693147
    """
    (x,) = _known(x)
    return special.log_ndtr(-x)


def mills(x: Any) -> Any:
    """P(N >= x)/phi(x); overflows below x = -37.

    Parameters: a number or an array.
    Returns: the ratio, in the same shape.

    Example:
        >>> round(float(mills(0.0)), 6)  # sqrt(pi/2)
        1.253314
    """
    (x,) = _known(x)
    return _SQRT_PI_2 * special.erfcx(x * _SQRT1_2)


def laplace_log_tail(x: Any) -> Any:
    """log P(X >= x) of the standard Laplace law.

    Parameters: a number or an array.
    Returns: the logarithm of the tail, in the same shape.

    Example:
        >>> round(float(laplace_log_tail(1.0)), 6)  # log(1/2) - 1
        -1.693147
    """
    (x,) = _known(x)
    above = np.maximum(x, 0.0)
    below = np.minimum(x, 0.0)
    return np.where(x >= 0, -math.log(2) - above, np.log1p(-0.5 * np.exp(below)))


def log1mexp(x: Any) -> Any:
    """log(1 - e^x) for x <= 0, without cancellation at either end.

    Reference: Maechler 2012, Accurately computing log(1 - exp(-|a|)).

    Parameters: numbers of at most 0.
    Returns: the logarithm, -inf at 0.

    Example:
        >>> round(float(log1mexp(-1.0)), 6)
        -0.458675
    """
    (x,) = _known(x)
    if (x > 0).any():
        raise ValueError("log1mexp takes numbers of at most 0: 1 - e^x is negative above")
    with np.errstate(divide="ignore"):
        return np.where(x > -math.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_difference(larger: Any, smaller: Any) -> Any:
    """log(e^larger - e^smaller) for larger >= smaller.

    Parameters: two logarithms, the larger first.
    Returns: the logarithm of the difference.

    Example:
        >>> import math
        >>> round(float(log_difference(math.log(3.0), math.log(1.0))), 6)  # log 2
        0.693147
    """
    larger, smaller = _known(larger, smaller)
    if (larger < smaller).any() or np.isposinf(smaller).any():
        raise ValueError("log_difference takes larger >= smaller, and smaller finite or -inf")
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isneginf(larger), 0.0, smaller - larger)
    return larger + log1mexp(gap)
