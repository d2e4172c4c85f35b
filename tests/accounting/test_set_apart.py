"""Losses set apart: bounds hold where they matter, not only where a cap hides what they cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shapedp.accounting import subsample
from shapedp.accounting.fourier import convolve
from shapedp.privacy import GaussianLoss, LaplaceLoss
from shapedp.privacy.losses import RadialLoss
from shapedp.privacy.losses.discrete import bound_masses
from shapedp.privacy.losses.masses import Masses

AT = np.linspace(0.0, 3.0, 31)


def _delta(losses: list[float], masses: list[float], times: int) -> np.ndarray:
    total, weight = np.zeros(1), np.ones(1)
    for _ in range(times):
        total = np.add.outer(total, losses).ravel()
        weight = np.multiply.outer(weight, masses).ravel()
    return np.array([float(weight @ -np.expm1(np.minimum(e - total, 0.0))) for e in AT])


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_point_set_apart_stays_a_lower_bound(times: int) -> None:
    losses, high = [-1.0, 0.0, 1.0], 0.5
    masses = [high * math.exp(-1), 1 - high * (1 + math.exp(-1)), high]
    whole = Masses(1.0, -1, np.array(masses))
    apart = whole.apart(1.0)
    assert apart.infinity == high
    assert whole.apart(1.5) is whole
    lower = convolve([(apart, times)], 0.0, upper=False, tail=1e-15, node_limit=2**12).delta(AT)
    assert (lower <= _delta(losses, masses, times) * (1 + 1e-12)).all()


def test_what_is_apart_shows_nearly_all_of_its_mass() -> None:
    masses = Masses(1.0, -1, np.array([0.1, 0.6, *[0.0] * 28, 0.3]))
    lower = convolve([(masses.apart(20.0), 3)], 0.0, upper=False, tail=1e-15, node_limit=2**12).delta(AT)
    assert lower[0] == pytest.approx(1 - 0.7**3, rel=1e-9)


def test_mass_at_infinity_adds_up_over_all_copies() -> None:
    masses = Masses(1.0, -1, np.array([0.1, 0.6, 0.2]), infinity=0.1)
    upper = convolve([(masses, 4)], 0.0, upper=True, tail=1e-15, node_limit=2**12).delta(np.array([50.0]))
    assert 1 - 0.9**4 <= upper[0] <= (1 - 0.9**4) * 1.001


LOSSES = {
    "sampled laplace": subsample(LaplaceLoss(1.0, np.array([1.0]), worst=True), 0.01, adjacency="add-remove"),
    "sampled gaussian": subsample(GaussianLoss(2.0), 0.05, adjacency="add-remove"),
    "laplace": LaplaceLoss(0.7, np.array([0.7]), worst=True),
    "product noise": RadialLoss(100, 1.0, 2.0, 0.12),
    "sampled product noise": subsample(RadialLoss(14, 1.0, 2.0, 0.06), 0.01, adjacency="add-remove"),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("step", [0.03, 0.25, 2.7])
@pytest.mark.parametrize("reverse", [False, True])
def test_masses_bound_the_curve_on_coarse_grids(name: str, step: float, reverse: bool) -> None:
    loss, at = LOSSES[name], np.linspace(0.0, 12.0, 401)
    low, high = loss.profile(at, reverse=reverse)
    below, above = bound_masses(loss, step, -40, 60, reverse=reverse)
    assert (below.hockey_stick(at, upper=False) <= high * (1 + 1e-12)).all()
    assert (above.hockey_stick(at, upper=True) >= low * (1 - 1e-12)).all()


def test_negative_losses_that_a_step_hides_leave_a_lower_bound() -> None:
    below, _ = bound_masses(LOSSES["sampled product noise"], 2.7, -40, 60, reverse=False)
    at = np.array([10.0, 30.0])
    assert (below.hockey_stick(at, upper=False) > 0.5 * LOSSES["sampled product noise"].profile(at)[0]).all()


def test_far_levels_are_a_ball_about_the_pole() -> None:
    """exact: both integrals in 120 digits."""
    exact = 1.40785960303369e-17
    found = RadialLoss(3, 1.0, 2.0, 2e-4).delta(60.0)
    assert found.lower <= exact <= found.upper
    assert found.relative_gap < 1e-9
