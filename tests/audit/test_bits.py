"""The bit-pattern audit: naive floats are told apart, the library's grid is not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.audit.helpers import naive_laplace

import shapedp as sdp
from shapedp import audit
from shapedp.audit.lowbits import last_bit

OURS = {
    "laplace": lambda: sdp.recipes.laplace(dim=1, sensitivity=1.0, epsilon=1.0, delta=0.0),
    "discrete": lambda: sdp.calibrate("laplace", sdp.L1(1.0, 1), epsilon=1.0, delta=0.0),
    "gaussian": lambda: sdp.calibrate("gaussian", sdp.L2(1.0, 1), epsilon=1.0, delta=1e-6),
}


@pytest.mark.parametrize("other", [1.0, 1 / 3, 0.01])
def test_a_float_naive_laplace_sampler_is_caught(other):
    result = audit.bits(
        naive_laplace, neighbours=(0.0, other), epsilon=1.0, delta=1e-6, samples=100_000, vectorized=True, seed=1
    )
    assert result.violation


@pytest.mark.parametrize("other", [1.0, 1 / 3, 0.01])
@pytest.mark.parametrize("name", OURS)
def test_ours_are_not(name, other):
    """Confidence 0.9999 each; secure randomness."""
    m = OURS[name]()
    assert not audit.bits(m, neighbours=([0.0], [other]), samples=100_000, confidence=0.9999).violation


def test_the_last_set_bit():
    place, depth = last_bit(np.array([1.0, 1.5, -0.75, 2.0**-60 + 2.0**-70, 0.0, 1 + 2.0**-52]))
    assert place[:4].tolist() == [0, -1, -2, -70]
    assert depth[:4].tolist() == [0, 1, 1, 10]
    assert (place[5], depth[5]) == (-52, 52)


def test_sketches_are_refused():
    m = sdp.Mixing(rows=3, row_bound=1.0, gamma=20.0, epsilon=1.0, delta=1e-3)
    with pytest.raises(TypeError, match="additive mechanism or a function"):
        audit.bits(m, neighbours=(np.eye(2), np.zeros((2, 2))))
