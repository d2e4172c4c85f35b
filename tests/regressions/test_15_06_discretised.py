"""Losses on a grid dropped every mass above loss 700 and subtracted nearly equal numbers: an "upper" end of 1.8e-41
stood for a delta of 1."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, compose
from shapedp.privacy import GaussianLoss
from shapedp.privacy.losses.discrete import DiscreteLoss
from shapedp.privacy.losses.masses import Masses


def test_a_hopeless_gaussian_is_not_certified() -> None:
    certificate = sdp.certify(GaussianLoss(50.0).discretize(), epsilon=1, delta=1e-6)
    assert certificate.verdict != "certified"
    assert certificate.bracket.upper > 0.99


@pytest.mark.parametrize("top", [10.0, 640.0, 800.0, 5000.0, 1e6])
def test_large_losses_count(top: float) -> None:
    chance = np.zeros(2)
    chance[0], chance[1] = 1 - 1e-3, 1e-3
    masses = Masses(top, 0, chance)
    loss = DiscreteLoss(masses, masses, masses, masses)
    for epsilon in (0.0, 0.5 * top, 0.999 * top, top - 1e-3):
        exact = 1e-3 * -math.expm1(epsilon - top)
        found = loss.delta(epsilon)
        assert found.lower <= exact * (1 + 1e-12)
        assert exact * (1 - 1e-12) <= found.upper <= exact * (1 + 1e-6) + 1e-15
    assert loss.delta(top).upper == 0.0


def test_large_losses_count_in_compositions_off_the_grid() -> None:
    chance = np.zeros(801)
    chance[0], chance[-1] = 1 - 1e-3, 1e-3
    masses = Masses(1.0, 0, chance)
    loss = DiscreteLoss(masses, masses, masses, masses)
    mixed = compose([loss, BareLoss(0.1), GaussianLoss(0.3)])
    assert mixed.delta(1.0).upper >= 1e-3
    assert compose([(loss, 2)]).delta(1.0).upper >= 1 - (1 - 1e-3) ** 2 - 1e-12


@pytest.mark.parametrize("pure", [1e-13, 1e-9, 1e-3, 5.0])
def test_tiny_losses_keep_their_digits(pure: float) -> None:
    grid = BareLoss(pure).discretize()
    for share in (0.0, 0.5, 0.9):
        exact, found = BareLoss(pure).delta(share * pure), grid.delta(share * pure)
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper <= exact.upper * (1 + 1e-6)


@pytest.mark.parametrize("mu", [40.0, 50.0])
def test_large_losses_are_bounded_from_below(mu: float) -> None:
    """The check of the lower polygon overflowed beyond 709, and rounding was measured against far larger knots."""
    found, own = GaussianLoss(mu).discretize(), GaussianLoss(mu)
    for epsilon in (1.0, mu * mu / 2, mu * mu / 2 + 5 * mu):
        truth = own.delta(epsilon)
        assert 0.999 * truth.upper < found.delta(epsilon).lower <= truth.upper
