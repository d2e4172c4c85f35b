"""Faults seen in other accountants, turned into tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.reference.pairs import gaussian_delta, response_delta

from shapedp.accounting import ACCOUNTANTS, BareLoss, compose
from shapedp.privacy import GaussianLoss


def test_the_count_of_randomised_response_is_not_ignored() -> None:
    bracket = compose([(BareLoss(0.5), 20)]).delta(1.0)
    assert bracket.lower <= response_delta(0.5, 0.0, 20, 1.0) <= bracket.upper
    assert bracket.lower > BareLoss(0.5).delta(0.0).upper


def test_the_count_of_a_pure_mechanism_is_not_ignored_by_renyi() -> None:
    once, many = (compose([(BareLoss(0.1), n)], closed_forms=False).renyi(4.0).upper for n in (1, 50))
    assert many == pytest.approx(50 * once, rel=1e-9)
    answers = [ACCOUNTANTS["renyi"].answer([(BareLoss(0.1), n)], 1e-6).epsilon for n in (1, 50)]
    assert answers[1] > 3 * answers[0]


def test_ten_thousand_weak_gaussians_never_dip_below_zero_or_the_truth() -> None:
    composed = compose([(GaussianLoss(0.01), 10_000)], closed_forms=False, accuracy=1e-3)
    for epsilon in (4.0, 6.0, 8.0):
        bracket = composed.delta(epsilon)
        exact = gaussian_delta(epsilon, (0.01, 10_000))
        assert 0 < bracket.lower <= exact <= bracket.upper
        assert bracket.relative_gap <= 1e-2


@pytest.mark.parametrize("delta", [1e-10, 1e-11, 1e-14, 1e-20])
def test_upper_epsilon_stays_above_the_exact_one_at_tiny_delta(delta: float) -> None:
    bracket = compose([(GaussianLoss(0.02), 2500)], closed_forms=False, accuracy=1e-4).epsilon(delta)
    exact = GaussianLoss(math.sqrt(2500) * 0.02).epsilon(delta)
    assert bracket.lower <= exact.upper
    assert exact.lower <= bracket.upper
    assert bracket.relative_gap <= 1e-4


def test_delta_decreases_without_numerical_bumps() -> None:
    epsilon = np.linspace(0.0, 9.0, 300)
    upper = compose([(GaussianLoss(0.05), 400)], closed_forms=False, accuracy=1e-3).profile(epsilon)[1]
    assert (upper[1:] <= upper[:-1] * (1 + 1e-2)).all()
    assert (upper > 0).all()
