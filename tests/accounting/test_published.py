"""Published accounting figures: the product paper's own, and Gaussian DP-SGD by several accountants."""

from __future__ import annotations

import math

import pytest

from shapedp.accounting import ACCOUNTANTS, amplify, compose, he_theorem_3, subsample
from shapedp.privacy import GaussianLoss

DELTA = 1e-5
# name: rate, sigma, steps, then Renyi, privacy-loss distribution, central limit
ROWS = {
    "MNIST": (256 / 60000, 1.3, 11719, 1.80, 1.65, 1.62),
    "CIFAR-10": (512 / 50000, 0.5, 9765, 50.07, 43.88, 58.25),
    "Adult": (256 / 29305, 0.55, 3434, 16.85, 14.98, 14.04),
    "IMDb": (512 / 25000, 0.56, 2929, 35.39, 31.30, 36.35),
    "MovieLens": (10000 / 800167, 0.6, 1600, 12.65, 11.13, 9.64),
}


@pytest.mark.parametrize("name", ROWS)
def test_gaussian_training(name: str) -> None:
    rate, sigma, steps, renyi, pld, clt = ROWS[name]
    items = [(subsample(GaussianLoss(1 / sigma), rate), steps)]
    bracket = compose(items, accuracy=1e-3).epsilon(DELTA)
    assert bracket.upper == pytest.approx(pld, rel=5e-3)
    assert bracket.lower == pytest.approx(pld, rel=5e-3)
    by_renyi = ACCOUNTANTS["renyi"].answer(items, DELTA)
    assert by_renyi.epsilon == pytest.approx(renyi, rel=5e-3)
    assert by_renyi.epsilon > bracket.lower
    by_clt = ACCOUNTANTS["clt"].answer(items, DELTA)
    assert by_clt.epsilon == pytest.approx(clt, rel=5e-3)
    assert by_renyi.certifies
    assert not by_clt.certifies
    if name == "MNIST":
        assert [f"{value:.2f}" for value in (by_renyi.epsilon, bracket.upper, by_clt.epsilon)] == ["1.80", "1.65", "1.62"]


def test_subsampled_gaussian_to_five_decimals() -> None:
    bracket = compose([(subsample(GaussianLoss(1 / 1.3), 256 / 60000), 10_000)]).epsilon(DELTA)
    assert bracket.gap <= 1e-5
    assert bracket.lower - 1e-5 <= 1.51434 <= bracket.upper + 1e-5


def test_the_central_limit_can_under_report() -> None:
    rate, sigma, steps, *_ = ROWS["MovieLens"]
    items = [(subsample(GaussianLoss(1 / sigma), rate), steps)]
    assert ACCOUNTANTS["clt"].answer(items, DELTA).epsilon < compose(items, accuracy=1e-3).epsilon(DELTA).lower


# The paper's T is epochs * floor(N/B); per-step epsilon 0.1..., amplified, then composed by Theorem 3 with d~ = 1e-8.
def composed_epsilon(step_epsilon: float, times: int) -> float:
    return he_theorem_3(step_epsilon, 0.0, times, 1e-8)[0]


def test_theorem_3_is_looser_than_the_optimum() -> None:
    from shapedp.accounting import BareLoss

    epsilon, delta = he_theorem_3(0.05, 1e-9, 1000, 1e-8)
    optimum = compose([(BareLoss(0.05, 1e-9), 1000)])
    assert optimum.delta(epsilon).upper <= delta
    assert optimum.epsilon(delta).upper <= epsilon


def test_amplification_of_a_bare_guarantee() -> None:
    epsilon, delta = amplify(1.0, 1e-5, 0.01)
    assert epsilon == pytest.approx(math.log1p(0.01 * math.expm1(1.0)), rel=1e-14)
    assert delta == pytest.approx(1e-7)
