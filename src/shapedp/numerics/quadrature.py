"""Gauss-Legendre panels with an error bound from a Bernstein ellipse."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from shapedp.numerics.arrays import Floats

ELLIPSES = np.array([1.8, 3.0, 5.5, 11.0])


@cache
def legendre(points: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [-1, 1], each the float nearest to the truth: Newton steps in 50 decimal digits."""
    nodes, weights = np.empty(points), np.empty(points)
    with localcontext() as context:
        context.prec = 50
        for i in range(points):
            x = Decimal(-math.cos(math.pi * (i + 0.75) / (points + 0.5)))
            for _ in range(5):  # the start is good to 1e-3 of the spacing: 1e-48 after four steps
                before, value = Decimal(1), x
                for n in range(2, points + 1):
                    before, value = value, ((2 * n - 1) * x * value - (n - 1) * before) / n
                slope = points * (before - x * value) / (1 - x * x)
                x -= value / slope
            nodes[i], weights[i] = float(x), float(2 / ((1 - x * x) * slope * slope))
    return nodes, weights


def ellipse_axes(half_width: Floats) -> tuple[Floats, Floats]:
    """The two half-axes of each ellipse of `ELLIPSES` about panels of the given half-widths (a new last axis)."""
    width = half_width[..., None]
    return width * (0.5 * (ELLIPSES + 1 / ELLIPSES)), width * (0.5 * (ELLIPSES - 1 / ELLIPSES))


def gauss_error(half_width: Floats, suprema: Floats, points: int) -> Floats:
    """The least bound on the error of a panel, given suprema of |f| on its ellipses (last axis).

    Guarantee: |integral - sum| <= 8 B rho^(1-2n)/(rho - 1) per unit half-width if |f| <= B inside the ellipse
    of parameter rho: the polynomial of degree 2n - 1 that truncates the Chebyshev series errs by at most
    2 B rho^(1-2n)/(rho - 1), the integral and the sum of positive weights each count it twice.
    Reference: Trefethen 2013, Approximation Theory and Approximation Practice, Theorem 8.2.
    """
    factors = 8 * ELLIPSES ** (1.0 - 2 * points) / (ELLIPSES - 1)
    return np.asarray(half_width * np.min(suprema * factors, axis=-1))
