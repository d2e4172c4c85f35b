"""AdaptiveMixing counted the failure z > tau, but l is released on a grid: half a step up fails too.

Also: the eigenvalue's own error was not in tau, so that large data sets were refused.
"""

from __future__ import annotations

import pytest
from flint import arb

from shapedp.mechanisms import AdaptiveMixing
from shapedp.sampling import grid_for


def normal_tail(x: arb) -> arb:
    return (x / arb(2).sqrt()).erfc() / 2


@pytest.mark.parametrize("eta", [1.0, 1.999, 6.0, 0.3])
@pytest.mark.parametrize("tau", [2.0, 5.0, 30.0])
def test_the_failure_covers_the_grid(eta, tau):
    m = AdaptiveMixing(rows=100, row_bound=1.0, gamma=30.0, eta=eta, tau=tau, epsilon=1.0, delta=1e-6)
    step = arb(float(grid_for(eta)))
    truth = normal_tail(arb(tau) - step / (2 * arb(eta)))  # l rounds to above lambda_min from there on
    assert m.failure >= truth
    assert m.failure <= truth * 1.001


def test_calibration_leaves_room_for_the_grid_and_the_eigenvalue():
    m = AdaptiveMixing.calibrate(rows=300, row_bound=1.0, epsilon=1.0, delta=1e-6, records=10**6, dim=50)
    assert m.certificate.verdict == "certified"
