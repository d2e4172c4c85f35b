"""Passes whose law of one run sits on one point as floats see it: the choice of a grid divided nothing by nothing.

The grid held NaN, with a RuntimeWarning, and the upper law in reverse lost all of its mass there.
"""

from __future__ import annotations

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, allocate
from shapedp.numerics.positive_sums import Points
from shapedp.privacy import Loss


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "base", [sdp.LaplaceLoss(0.2), sdp.LaplaceLoss(1e-12), sdp.GaussianLoss(50.0), sdp.GaussianLoss(100.0)]
)
@pytest.mark.parametrize("reverse", [False, True])
def test_no_warning_and_no_mass_lost(base: Loss, reverse: bool) -> None:
    loss = allocate(base, 2, adjacency="add-remove")
    lower, upper = loss.profile(np.array([0.0, 1.0]), reverse=reverse)
    assert np.all(lower <= upper)
    if isinstance(base, sdp.GaussianLoss):  # two runs of which one tells all: delta is nearly 1
        assert np.all(upper > 0.999)


@pytest.mark.parametrize("upper", [False, True])
def test_sums_of_one_point(upper: bool) -> None:
    law = Points(np.array([0.0, 3.0]), np.array([0.0, 1.0]))
    total = law.plus(law, 50, upper=upper, falling=True)
    value = float(total.below(np.array([7.0]), upper=upper)[0])
    assert value == pytest.approx(1.0, rel=1e-9)


def test_what_is_too_faint_shows_nothing_from_below() -> None:
    law = Points(np.array([1.0, 2.0]), np.array([1e-200, 1e-200]))
    total = law.plus(law, 50, upper=False)
    assert float(total.above(np.array([0.5]), upper=False)[0]) == 0


def test_tiny_responses() -> None:
    loss = allocate(BareLoss(1e-17), 7, adjacency="add-remove")
    assert loss.delta(0.0).lower <= 1e-17 / 4 < loss.delta(0.0).upper * 10
