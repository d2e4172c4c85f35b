"""Gaussian calibration through the public door, against a 50-digit reference."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from tests.reference import gaussian as reference

from shapedp import L1, L2, Blocks, Box, GaussianLoss, Sensitivity, calibrate


def test_sigma_is_private_and_within_a_billionth() -> None:
    worst = 0.0
    for epsilon, delta in reference.random_claims(500, seed=21):
        mechanism = calibrate("gaussian", L2(1.0, dim=3), epsilon=epsilon, delta=delta)
        sigma, least = arb(float(mechanism.law.scales[0])), 1 / reference.mu_for(epsilon, delta)
        assert sigma >= least, (epsilon, delta)
        worst = max(worst, float((sigma / least - 1).upper()))
        assert mechanism.certificate.verdict == "certified"
    assert worst < 1e-9


@pytest.mark.parametrize(
    ("sensitivity", "reach"),
    [
        (L2(3.0, dim=5), 3.0),
        (L1(3.0, dim=5), 3.0),
        (L2(1.0, dim=3, scales=[1.0, 2.0, 0.5]), None),
        (Box([1.0, 0.1, 2.0]), None),
        (Blocks([1.0, 0.3], [2, 4]), None),
        (L2(1e-100, dim=2), 1e-100),
        (L2(1e100, dim=2), 1e100),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_every_set_spends_exactly_mu(sensitivity: Sensitivity, reach: float | None) -> None:
    mu = GaussianLoss.calibrate(0.8, 1e-7).mu
    mechanism = calibrate("gaussian", sensitivity, epsilon=0.8, delta=1e-7)
    assert isinstance(mechanism.loss, GaussianLoss)
    assert mu * (1 - 1e-12) <= mechanism.loss.mu <= mu
    assert mechanism.loss.delta(0.8).upper <= 1e-7
    if reach is not None:
        assert mechanism.law.scales[0] == pytest.approx(reach / mu, rel=1e-12)
        assert mechanism.law.scales[0] >= reach / mu


def test_less_noise_is_refuted() -> None:
    """The certificate tells a relative 1e-9 apart."""
    mechanism = calibrate("gaussian", L2(1.0, dim=2), epsilon=1.0, delta=1e-6)
    law = type(mechanism.law)(float(mechanism.law.scales[0]) * (1 - 1e-9), 2)
    assert type(mechanism)(law, mechanism.sensitivity, 1.0, 1e-6).certificate.verdict == "refuted"


def test_profiles_of_zeros_need_consent() -> None:
    with pytest.raises(ValueError, match="exact_zeros"):
        calibrate("gaussian", Box([1.0, 0.0]), epsilon=1.0, delta=1e-6)
    mechanism = calibrate("gaussian", Box([1.0, 0.0]), epsilon=1.0, delta=1e-6, exact_zeros=True)
    assert mechanism.law.scales[1] == 0
    assert mechanism.release(np.array([0.0, 0.1])).value[1] == 0.1
