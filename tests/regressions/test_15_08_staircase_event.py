"""Staircase noise was exported as a Laplace event: certified (1, 0.4) after the round trip, its delta is 0.531."""

from __future__ import annotations

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import Plan, Step, compose, from_dp_accounting, to_dp_accounting, to_event
from shapedp.privacy import LaplaceLoss


def test_staircase_noise_is_no_event() -> None:
    pytest.importorskip("dp_accounting")
    mechanism = sdp.calibrate("staircase", sdp.Box([1.0], adjacency="add-remove"), epsilon=2.0, delta=0.0)
    for subject in (mechanism, mechanism.loss, compose([(mechanism, 50)]), Plan((Step(mechanism, 0.1, 3),))):
        with pytest.raises(TypeError, match="to_dp_accounting"):
            to_event(subject)
    with pytest.raises(TypeError, match="to_dp_accounting"):
        to_event(LaplaceLoss(2.0, continuous=False))


def test_its_distribution_bounds_it() -> None:
    """The two-step noise of a staircase: what an adversary gains from the sign of the first step alone."""
    pytest.importorskip("dp_accounting")
    mechanism = sdp.calibrate("staircase", sdp.Box([1.0]), epsilon=2.0, delta=0.0)
    law, grid = mechanism.law, float(np.atleast_1d(mechanism.law.grid)[0])
    back = from_dp_accounting(to_dp_accounting(mechanism.loss, step=1e-3))
    points = np.rint(np.arange(-40, 40, 0.05) / grid) * grid
    density = np.exp(law.log_density(points[:, None]))
    moved = np.exp(law.log_density(points[:, None] - 1.0))
    shares = density.sum(), moved.sum()
    assert grid < 1e-3
    for epsilon in (0.0, 0.5, 1.0, 1.9):
        exact = np.maximum(density / shares[0] - np.exp(epsilon) * moved / shares[1], 0.0).sum()
        assert back.delta(epsilon).upper >= exact - 0.02  # the sum over a coarse grid is off by less
