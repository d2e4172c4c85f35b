"""Published accounting figures: the product paper's own, and Gaussian DP-SGD by several accountants."""

from __future__ import annotations

import math

import mpmath as mp
import pytest

from shapedp.accounting import ACCOUNTANTS, BareLoss, amplify, compose, he_theorem_3, subsample
from shapedp.mechanisms import Additive
from shapedp.noise.radial import chi
from shapedp.papers.product_noise.recipes import ProductNoise
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L2

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
    # The established accountant interpolates at fractional orders; the exact divergence is at most its value.
    assert bracket.lower < by_renyi.epsilon <= renyi * 1.005
    assert by_renyi.epsilon == pytest.approx(renyi, rel=0.05)
    by_clt = ACCOUNTANTS["clt"].answer(items, DELTA)
    assert by_clt.epsilon == pytest.approx(clt, rel=5e-3)
    assert by_renyi.certifies
    assert not by_clt.certifies
    if name == "MNIST":
        figures = [f"{value:.2f}" for value in (by_renyi.epsilon, bracket.upper, by_clt.epsilon)]
        assert figures == ["1.80", "1.65", "1.62"]


def test_subsampled_gaussian_to_five_decimals() -> None:
    bracket = compose([(subsample(GaussianLoss(1 / 1.3), 256 / 60000), 10_000)]).epsilon(DELTA)
    assert bracket.gap <= 1e-5
    assert bracket.lower - 1e-5 <= 1.51434 <= bracket.upper + 1e-5


def test_the_central_limit_can_under_report() -> None:
    rate, sigma, steps, *_ = ROWS["MovieLens"]
    items = [(subsample(GaussianLoss(1 / sigma), rate), steps)]
    assert ACCOUNTANTS["clt"].answer(items, DELTA).epsilon < compose(items, accuracy=1e-3).epsilon(DELTA).lower


# name: per-step epsilon, samples, batch, epochs, then the published epsilon'
TRAINING = {
    "MNIST": (0.3, 60000, 256, 50, 0.992),
    "CIFAR-10": (1.8, 60000, 512, 100, 38.108),
    "Adult": (0.8, 29305, 256, 30, 3.974),
    "IMDb": (1.0, 25000, 512, 60, 12.988),
    "MovieLens": (0.8, 800167, 10000, 20, 3.875),
}


def claimed_delta(dim: int, epsilon: float, k: float) -> float:
    """Eq. (13) of the product-noise paper at q = M/2."""
    q = dim / 2
    t = math.exp((math.log(2) + 2 / q * math.log(k) + (1 + 2 / q) * math.log((q + 3) / 2) - (1 + 1 / q)) / 2)
    shift = mp.mpf(epsilon) / t
    x = shift**2 / 2
    series = mp.hyp1f1((q + 1) / 2, 0.5, x) + mp.sqrt(2) * shift * mp.hyp1f1((q + 2) / 2, 1.5, x)
    return float(mp.exp(-x) / (k * mp.sqrt(mp.pi)) * series * math.sqrt((dim - 1) / ((dim - q - 1.5) * (q + 0.75))))


@pytest.mark.parametrize("name", TRAINING)
def test_product_noise_training_by_its_own_formulas(name: str) -> None:
    epsilon, samples, batch, epochs, published = TRAINING[name]
    step, _ = amplify(epsilon, 0.0, batch / samples)
    assert he_theorem_3(step, 0.0, epochs * (samples // batch), 1e-8)[0] == pytest.approx(published, abs=5.01e-4)


def test_product_noise_mnist_delta() -> None:
    step = amplify(0.3, claimed_delta(26010, 0.3, 40000), 256 / 60000)
    tail = he_theorem_3(step[0], 0.0, 11700, 1e-8)[1]  # d'' alone, 1e-8, is left out of the printed figure
    assert he_theorem_3(*step, 11700, 1e-8)[1] - tail == pytest.approx(9.87e-6, abs=5e-9)


def test_what_holds_for_product_noise_training_on_mnist() -> None:
    """One sampled step of 11,700 already exceeds the delta claimed for all of them, 33 times over.

    The scale is for 2 C; a record that comes or goes moves the sum by C.
    """
    noise = ProductNoise(26010, 1.0, 0.3, 40000.0)
    assert noise.claimed_delta == pytest.approx(claimed_delta(26010, 0.3, 40000), rel=1e-6)
    sensitivity = L2(0.5, 26010, adjacency="add-remove")
    mechanism = Additive(chi(1.0, noise.sigma, 26010), sensitivity, 0.3, noise.claimed_delta)
    step = subsample(mechanism, 256 / 60000)
    assert step.delta(0.992).lower == pytest.approx(3.305e-4, rel=1e-3)
    assert step.delta(0.992).lower > 33 * 9.87e-6


def test_theorem_3_falls_below_the_optimum() -> None:
    epsilon, delta = he_theorem_3(0.05, 1e-9, 1000, 1e-8)
    assert compose([(BareLoss(0.05, 1e-9), 1000)]).delta(epsilon).lower > delta
    epsilon, delta = he_theorem_3(0.05, 0.0, 1000, 1e-8)  # without delta it is valid, and looser
    assert compose([(BareLoss(0.05), 1000)]).delta(epsilon).upper <= delta


def test_amplification_of_a_bare_guarantee() -> None:
    epsilon, delta = amplify(1.0, 1e-5, 0.01)
    assert epsilon == pytest.approx(math.log1p(0.01 * math.expm1(1.0)), rel=1e-14)
    assert delta == pytest.approx(1e-7)
