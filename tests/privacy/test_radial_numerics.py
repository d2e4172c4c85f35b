"""What the radial loss stands on: caps of spheres and the quadrature bound, against interval arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx

from shapedp.numerics.excess import ShiftExcess
from shapedp.numerics.quadrature import ELLIPSES, gauss_error, legendre
from shapedp.numerics.sphere import CAP_ERROR, Cap


@pytest.mark.parametrize("dim", [2, 3, 4, 7, 14, 15, 16, 31, 121, 122, 333, 2500, 10**4, 2 * 10**5, 10**9])
def test_caps_hold_to_their_stated_error(dim):
    old, ctx.prec = ctx.prec, 400
    try:
        rng = np.random.default_rng(dim % 1000)
        c = np.concatenate(
            [10 ** rng.uniform(-8, 0, 8), rng.uniform(0, 1, 8), rng.uniform(0, 8, 8) / math.sqrt(dim), [0.632455]]
        )
        c = c[(c < 0.99999) & (-(dim - 1) / 2 * np.log1p(-(np.minimum(c, 0.99999) ** 2)) < 690)]
        for at, found in zip(c, Cap(dim).scaled(c), strict=True):
            x, half = 1 - arb(float(at)) ** 2, arb(dim - 1) / 2
            truth = x.beta_lower(half, arb(0.5), regularized=True) / 2 / x**half
            assert abs(float((arb(float(found)) - truth) / truth)) < CAP_ERROR
    finally:
        ctx.prec = old


def test_the_gauss_bound_covers_a_function_with_a_pole():
    """1/(z - c) on [-1, 1], c outside each ellipse: supremum 1/distance; the bound holds and is not idle."""
    nodes, weights = legendre(8)
    for c in (1.5, 2.0, 4.0):
        exact = math.log((c - 1) / (c + 1))
        error = abs(float(weights @ (1 / (nodes - c))) - exact)
        reach = 0.5 * (ELLIPSES + 1 / ELLIPSES)
        suprema = np.where(reach < c, 1 / np.abs(c - reach), np.inf)
        bound = float(gauss_error(np.array([1.0]), suprema[None, :], 8)[0])
        assert error <= bound
        assert bound < 1e-2


def test_rough_brackets_hold_fine_ones():
    """A rough bracket holds a fine one: the bounds of accepted panels cover their errors."""
    for dim, a, b, shift, level in ((3, 2.5, 1.2, 0.5, 0.5), (14, 10.5, 2.0, 0.2, 1.0), (1000, 900.0, 2.0, 0.5, 0.5)):
        rough = ShiftExcess(dim, a, b, shift).bounds(np.array([level]), 1e-3)
        fine = ShiftExcess(dim, a, b, shift).bounds(np.array([level]), 1e-10)
        assert rough[0][0] <= fine[0][0] <= fine[1][0] <= rough[1][0]
        assert fine[1][0] - fine[0][0] <= 1e-9 * fine[1][0]
