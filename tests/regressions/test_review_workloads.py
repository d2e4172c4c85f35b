"""Hulls and workloads: reaches beyond the squares of floats, plans that were edited, intervals of means, full tables."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import shapedp as sdp
from shapedp.workloads import WorkloadMechanism
from shapedp.workloads.counting import counted

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-155, 1.0, 1e155, 1e170, 1e300])
def test_reach_of_a_hull_in_any_unit(scale, differences):
    """Squares of v/s overflowed, a NaN was passed over, and noise of 1e-170 had a mu of 5e-324."""
    hull = sdp.Hull([[3.0, 0.0], [0.0, 4.0]], differences=differences, adjacency="replace" if differences else None)
    low, high = hull.l2_reach(np.full(2, scale))
    truth = (5.0 if differences else 4.0) / scale
    assert low <= truth <= high
    assert high <= truth * (1 + 1e-9)
    assert sdp.Gaussian([scale, scale]).loss(hull).mu >= truth * (1 - 1e-12)


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize(("size", "scale"), [(1e139, 2.0**-399), (1e-139, 2.0**398)])
def test_reach_of_a_turned_hull_in_any_unit(size, scale, differences):
    hull = sdp.Hull([[size, 0.0], [0.0, size]], differences=differences)
    law = sdp.TensorGaussian([np.array([[0.6, -0.8], [0.8, 0.6]]) @ np.diag([1.0, 2.0])], scale=scale)
    white = np.linalg.inv(np.array([[0.6, -0.8], [0.8, 0.6]]) @ np.diag([1.0, 2.0]))
    seen = white[:, 0] - white[:, 1] if differences else white[:, 0]
    lengths = [np.linalg.norm(one) for one in ([seen] if differences else white.T)]
    assert law.loss(hull).mu >= max(lengths) * size / scale * (1 - 1e-6)
