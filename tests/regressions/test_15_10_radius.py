"""The sampler's radius stands on the gamma law; scipy's gammainc is 3% low at 1e7, 72% at 1e9, far below the mean.

The radius at dim 1e7 was off by 3e-8 where 2^-40 is promised. A law with a small a/b and a large b gave radius 0 where
Y = R^b leaves the range of floats.
"""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx
from tests.reference import gamma_reference as reference

from shapedp.numerics.gammatail import MILLS_ERROR, gamma_below, log_quantile, log_radii, lower_mills, upper_mills
from shapedp.numerics.radius import RadiusRule

SHAPES = [1e-6, 0.01, 0.5, 1.0, 7.3, 49.9, 50.0, 333.0, 1e4, 3e5, 1e7]


@pytest.mark.parametrize("k", SHAPES)
def test_tails_hold_to_their_stated_error(k):
    levels = np.array([0.0, 1e-6, 0.1, 1.0, 3.3, 8.0, 25.0])
    for upper in (False, True):
        z = log_radii(k, levels if upper else -levels)
        found = upper_mills(k, z) if upper else lower_mills(k, z)
        for at, value in zip(z.tolist(), found.tolist(), strict=True):
            assert abs(float(arb(value) / reference.mills(k, at, upper=upper) - 1)) < MILLS_ERROR


@pytest.mark.parametrize("k", SHAPES)
def test_the_mass_below_holds_to_its_stated_error(k):
    z = log_radii(k, np.array([-26.0, -9.0, -1.0, -0.0, 0.7, 4.0]))
    found, error = gamma_below(k, z)
    old, ctx.prec = ctx.prec, 128
    try:
        for at, value, slack in zip(z.tolist(), found.tolist(), error.tolist(), strict=True):
            tail = reference.log_tail(k, at, upper=at > 0).exp()
            assert abs(arb(value) - (1 - tail if at > 0 else tail)) <= slack
    finally:
        ctx.prec = old


@pytest.mark.parametrize("k", [0.01, 0.5, 7.3, 333.0, 3e5, 1e7])
def test_quantiles_hold_to_two_to_the_minus_forty(k):
    rng = np.random.default_rng(7)
    small = np.array([0.5, 0.01, 1e-6, 1e-12, float(rng.uniform(1e-30, 1e-20)), 2.0**-129])
    for below, above in ((small, 1 - small), (1 - small, small)):
        found = log_quantile(k, below, above)
        for at, p, q in zip(found.tolist(), below.tolist(), above.tolist(), strict=True):
            upper = at > 0
            missed = reference.log_tail(k, at, upper=upper) - arb(q if upper else p).log()
            moved = missed * reference.mills(k, at, upper=upper)
            assert abs(float(moved)) < 2.0**-40 * max(1.0, 1 / k)


def test_a_radius_does_not_vanish_with_its_power():
    """Y = R^100 underflows at R = 1e-4; R does not. P(R <= r) = r^a/Gamma(k + 1) there."""
    found = RadiusRule(0.01, 100.0).radii(np.array([0.9]), np.array([0.1]))
    assert 2.6e-5 < found[0] < 2.7e-5
