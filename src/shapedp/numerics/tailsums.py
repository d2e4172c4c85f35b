"""Sums of a grid's tail with geometric weights: positive terms only, no overflow, no cancellation."""

from __future__ import annotations

import math

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import UNIT


def decayed_sums(weights: Floats, factor: float) -> Floats:
    """A_i = sum over j >= i of factor^(j - i) weights_j, by A_i = weights_i + factor A_(i+1).

    Guarantee: for weights >= 0 and 0 <= factor <= 1 every A_i is within a relative 2 n 2^-53 of the exact sum, up to
    n times the smallest float where products underflow (n the number of weights).

    >>> decayed_sums(np.array([1.0, 2.0, 4.0]), 0.5)
    array([3., 4., 4.])
    """
    from scipy.linalg.blas import dtbsv  # only compositions need it: not at import time

    band = np.empty((2, weights.size), order="F")
    band[0], band[1] = -factor, 1.0
    return np.asarray(dtbsv(1, band, weights, diag=1), dtype=np.float64)


def hockey_stick_sums(weights: Floats, step: float, theta: float = 0.0) -> tuple[Floats, Floats, float]:
    """What E[(1 - e^(eps - X))_+ e^(-theta X)] is made of, for weights at points x_i = i step.

    Returns D, B and a relative error, with
        D_i = sum over j > i of w_j e^(-theta (x_j - x_i)) (1 - e^(-(x_j - x_i))),
        B_i = sum over j >= i of w_j e^(-(theta + 1)(x_j - x_i)).
    For eps = x_i - g with 0 <= g the sum over j >= i of w_j e^(-theta (x_j - x_i)) (1 - e^(eps - x_j)) is
    D_i + (1 - e^-g) B_i.

    Guarantee: both are exact up to the relative error, and up to `underflow(n, step)` where products underflow.
    D follows from D_i = e^(-theta step) (D_(i+1) + (1 - e^-step) B_(i+1)), so that nothing is subtracted.
    """
    tail = decayed_sums(weights, math.exp(-(theta + 1) * step))
    decay = math.exp(-theta * step)
    added = np.zeros(weights.size)
    added[:-1] = (decay * -math.expm1(-step)) * tail[1:]
    relative = UNIT * (8 * weights.size * (1 + (theta + 1) * step) + 64)
    return decayed_sums(added, decay), tail, relative


def underflow(size: int, step: float) -> float:
    """More than what underflowing products can hide from the sums of `hockey_stick_sums`."""
    return size * (size * min(step, 1.0) + 2) * 5e-324
