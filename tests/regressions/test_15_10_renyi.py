"""RadialLoss.renyi summed e^((alpha-1) eps) in floats: infinite for 12 in 4,065 dimensions, NaN for a pole."""

from __future__ import annotations

import math

import pytest

from shapedp.privacy.losses.radial import RadialLoss


@pytest.mark.parametrize(
    ("dim", "ratio", "alpha"),
    [(4065, 0.38, 82.8), (10, 0.38, 82.8), (10**6, 3.0, 50.0), (3, 30.0, 50.0), (100, 1e-4, 50.0)],
)
def test_the_gaussian_member_has_alpha_mu_squared_half(dim, ratio, alpha):
    found = RadialLoss(dim, float(dim), 2.0, ratio).renyi(alpha)
    truth = alpha * ratio**2
    assert found.lower <= truth <= found.upper <= 1.05 * truth


def test_a_law_with_a_pole_has_a_finite_order_near_the_critical_one():
    found = RadialLoss(4, 3.0, 2.0, 0.38).renyi(3.9)
    assert 0 < found.lower <= found.upper < math.inf


def test_orders_are_monotone_in_the_bracket():
    """D_alpha grows with alpha: no upper end below an earlier lower end."""
    loss = RadialLoss(300, 300.0, 1.5, 2.0)
    ends = [loss.renyi(alpha) for alpha in (1.5, 4.0, 20.0, 100.0, 400.0)]
    for i, first in enumerate(ends):
        assert all(first.lower <= later.upper for later in ends[i:])
        assert first.upper < math.inf
