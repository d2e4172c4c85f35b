"""Calibration of radial noise through the public surface, and composition like any other noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shapedp as sdp
from shapedp.noise.radial import best_shape
from shapedp.privacy.losses import GaussianLoss
from shapedp.privacy.losses.radial import RadialLoss

RATIOS = {2: 0.216, 3: 0.286, 5: 0.408, 14: 0.690, 50: 0.898, 100: 0.948}


def over_gaussian(mechanism, epsilon: float, delta: float) -> float:
    dim = mechanism.law.dim
    return mechanism.expected_squared_error * GaussianLoss.calibrate(epsilon, delta).mu ** 2 / dim


@pytest.mark.parametrize("dim", [pytest.param(d, marks=pytest.mark.slow if d < 14 else ()) for d in RATIOS])
def test_the_best_radial_law_beats_the_gaussian_by_what_theory_says(dim):
    mechanism = sdp.calibrate("radial", sdp.L2(1.0, dim=dim), epsilon=1.0, delta=1e-5)
    assert mechanism.certificate.verdict == "certified"
    assert over_gaussian(mechanism, 1.0, 1e-5) <= RATIOS[dim]


GRID = [
    (dim, e, d) for dim in (2, 3, 5, 14, 50, 100, 1000, 10**5) for e in (0.1, 1.0, 5.0) for d in (1e-3, 1e-6, 1e-10)
]


@pytest.mark.parametrize(
    "claim", [pytest.param(c, marks=() if i >= 27 and i % 12 == 4 else pytest.mark.slow) for i, c in enumerate(GRID)]
)
def test_the_best_radial_law_is_never_worse_than_the_gaussian(claim):
    dim, epsilon, delta = claim
    a, b = best_shape(dim, epsilon, delta)
    loss = RadialLoss.calibrate(dim, a, b, epsilon, delta)
    size = sdp.noise.radial.Radial(dim, a, b, 1.0).mean_squared_radius / loss.ratio**2
    assert loss.delta(epsilon).upper <= delta
    assert size * GaussianLoss.calibrate(epsilon, delta).mu ** 2 / dim <= 1 + 1e-9


def test_a_fixed_shape_is_certified_and_releases():
    mechanism = sdp.calibrate("radial", sdp.L2(2.0, dim=14), epsilon=1.0, delta=1e-5, shape=(10.5, 2.0))
    assert mechanism.certificate.verdict == "certified"
    assert over_gaussian(mechanism, 1.0, 1e-5) / 4 == pytest.approx(0.82, abs=0.01)
    release = mechanism.release(np.zeros(14), rng=np.random.default_rng(0))
    assert release.value.shape == (14,)
    again = sdp.Additive.from_json(mechanism.to_json())
    assert again.loss.delta(1.0) == mechanism.loss.delta(1.0)


def test_what_the_family_refuses():
    with pytest.raises(ValueError, match="exceeds dim"):
        sdp.calibrate("radial", sdp.L2(1.0, dim=3), epsilon=1.0, delta=1e-5, shape=(4.0, 2.0))
    with pytest.raises(ValueError, match="L2 ball"):
        sdp.calibrate("radial", sdp.Box([1.0, 2.0]), epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="dim >= 2"):
        sdp.calibrate("radial", sdp.L2(1.0, dim=1), epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="delta > 0"):
        sdp.calibrate("radial", sdp.L2(1.0, dim=3), epsilon=1.0, delta=0.0, shape=(3.0, 1.0))


def test_two_releases_compose_as_the_gaussian_does():
    loss = RadialLoss(50, 50.0, 2.0, 0.7 / math.sqrt(2))
    found, truth = loss.discretize(step=0.01).delta(1.0), GaussianLoss(0.7).delta(1.0)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.relative_gap < 1e-2


@pytest.mark.slow
def test_a_thousand_subsampled_steps():
    for loss in (RadialLoss(50, 50.0, 2.0, 1 / math.sqrt(2)), RadialLoss(50, 48.8, 1.116, 4.0)):
        composed = sdp.compose([(sdp.subsample(loss, 0.01), 1000)], accuracy=5e-3)
        bracket = composed.epsilon(1e-5)
        assert bracket.relative_gap <= 0.01
        if loss.a == loss.dim:
            gaussian = sdp.compose([(sdp.subsample(GaussianLoss(1.0), 0.01), 1000)]).epsilon(1e-5)
            assert bracket.lower <= gaussian.upper
            assert gaussian.lower <= bracket.upper
            assert bracket.upper == pytest.approx(gaussian.upper, rel=1e-3)
