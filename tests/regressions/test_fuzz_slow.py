"""Calls that took more than the stated time, found by the fuzz suite."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import shapedp as sdp
from shapedp import report
from shapedp.accounting import Step
from shapedp.report.guarantee import Guarantee

SECONDS = 20.0
PLAN = sdp.Plan((Step(sdp.GaussianLoss(1.0), 0.1, 5),))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (1e300, 1e-5), (1e300, 0.0)])
def test_a_page_of_a_plan(epsilon: float, delta: float) -> None:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report.of(PLAN, epsilon=epsilon, delta=delta)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("end", [0.625, 50.0])
def test_the_curve_that_is_drawn_lies_above_delta(end: float) -> None:
    """Few views bound delta from above, and are not seen to differ from it."""
    shown = Guarantee(sdp.certify(PLAN.loss, epsilon=0.5, delta=0.1), PLAN.loss)
    grid = np.linspace(0.0, end, 121)
    drawn = shown._deltas(grid)
    places = [3, 13, 60, 100] if end < 1 else [3, 13]
    exact = np.array([PLAN.loss.delta(float(grid[place])).lower for place in places])
    assert (drawn[places] >= exact).all()
    if end < 1:
        assert (drawn[places] <= exact * 1.1).all()
