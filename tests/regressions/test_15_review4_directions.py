"""At delta = 0 the largest losses of parts add up, from below, only where one direction reaches all of them.

A sample whose forward loss is at most 0.62 and whose reverse loss at most 0.38, and its mirror image: together at most
1.0 in either direction. The lower end said 1.24.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, compose
from shapedp.accounting.subsample import SubsampledLoss
from shapedp.numerics.arrays import Floats
from shapedp.privacy import Loss


class Two(Loss):
    """P = (p, 1 - p) against Q = (q, 1 - q)."""

    symmetric = False

    def __init__(self, p: float, q: float) -> None:
        super().__init__()
        object.__setattr__(self, "ends", (p, q))

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        p, q = self.ends[::-1] if reverse else self.ends  # type: ignore[attr-defined]
        exact = np.maximum(p - np.exp(epsilon) * q, 0.0) + np.maximum(1 - p - np.exp(epsilon) * (1 - q), 0.0)
        return np.maximum(exact - 1e-15, 0.0), np.where(exact > 0, exact + 1e-15, 0.0)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.25), (0.9, 0.6), (0.2, 0.05)])
def test_mirror_images(p: float, q: float) -> None:
    forward, backward = math.log(max(p / q, (1 - p) / (1 - q))), math.log(max(q / p, (1 - q) / (1 - p)))
    one, other = Two(p, q), Two(q, p)
    assert one.epsilon(0.0).lower == pytest.approx(max(forward, backward), rel=1e-6)
    both, twice = compose([one, other]).epsilon(0.0), compose([(one, 2)]).epsilon(0.0)
    assert both.lower <= forward + backward <= both.upper
    assert both.lower >= max(forward, backward) * (1 - 1e-6)
    assert twice.lower == pytest.approx(2 * max(forward, backward), rel=1e-6)


def test_samples_reach_their_largest_losses_together() -> None:
    parts = [
        (SubsampledLoss(BareLoss(1.0), 0.5), 2),
        (SubsampledLoss(BareLoss(2.0), 0.1), 3),
        (sdp.LaplaceLoss(1.0), 1),
    ]
    found = compose(parts).epsilon(0.0)
    exact = 2 * math.log1p(0.5 * math.expm1(1)) + 3 * math.log1p(0.1 * math.expm1(2)) + 1.0
    assert found.lower <= exact * (1 + 1e-12)
    assert found.upper >= exact * (1 - 1e-12)
    assert found.lower >= exact - 1.0 - 1e-9
