"""Each conversion is never below what it bounds, in interval arithmetic, and names its theorem."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from flint import arb
from tests.reference import gaussian as reference
from tests.reference.gaussian import precision

from shapedp import GaussianLoss
from shapedp.privacy import conversions
from shapedp.privacy.conversions import (
    gdp_to_dp,
    gdp_to_rdp,
    gdp_to_zcdp,
    mu_for,
    pure_to_rdp,
    pure_to_zcdp,
    rdp_curve_to_epsilon,
    rdp_to_delta,
    rdp_to_epsilon,
    zcdp_to_dp,
    zcdp_to_rdp,
)

PUBLIC = [f for name, f in vars(conversions).items() if inspect.isfunction(f) and name[0] != "_"]
OWN = [f for f in PUBLIC if f.__module__ == conversions.__name__]


@pytest.mark.parametrize("conversion", OWN, ids=lambda f: f.__name__)
def test_each_conversion_names_its_theorem(conversion: object) -> None:
    text = inspect.getdoc(conversion) or ""
    assert "Reference:" in text
    assert any(word in text for word in ("Proposition", "Theorem", "Corollary", "Definition"))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(10 ** rng.uniform(math.log10(low), math.log10(high)))


def orders(rng: np.random.Generator) -> float:
    return 1 + log_uniform(rng, 1e-9, 1e9)


def test_products_round_up() -> None:
    rng = np.random.default_rng(1)
    with precision(200):
        for _ in range(500):
            x, alpha = log_uniform(rng, 1e-170, 1e100), orders(rng)
            half = arb(x) ** 2 / 2
            assert half <= arb(gdp_to_zcdp(x))
            assert half <= arb(pure_to_zcdp(x))
            assert half * arb(alpha) <= arb(gdp_to_rdp(x, alpha))
            assert arb(x) * arb(alpha) <= arb(zcdp_to_rdp(x, alpha))
            assert half < 1e-290 or gdp_to_rdp(x, alpha) <= float(half) * alpha * (1 + 1e-13)


def test_randomised_response_dominates_itself() -> None:
    rng = np.random.default_rng(2)
    with precision(400):
        for _ in range(1500):
            epsilon, alpha = log_uniform(rng, 1e-8, 1500), orders(rng)
            e, a = arb(epsilon), arb(alpha)
            log_p, log_q = -((-e).exp() + 1).log(), -e - ((-e).exp() + 1).log()
            forward, backward = a * log_p + (1 - a) * log_q, a * log_q + (1 - a) * log_p
            truth = (forward + ((backward - forward).exp() + 1).log()) / (a - 1)
            bound = pure_to_rdp(epsilon, alpha)
            assert bound == epsilon or truth <= arb(bound), (epsilon, alpha)
            assert bound <= min(float(truth) * (1 + 1e-9), epsilon)


def tight_delta(alpha: arb, renyi: arb, epsilon: arb) -> arb:
    """e^((a-1)(R-e)) (1-1/a)^a/(a-1), the largest of (1 - e^(e-x)) over e^((a-1)(x-R))."""
    return ((alpha - 1) * (renyi - epsilon)).exp() * ((alpha - 1) / alpha) ** alpha / (alpha - 1)


def test_renyi_conversions_round_up() -> None:
    rng = np.random.default_rng(3)
    with precision(400):
        for _ in range(1500):
            alpha, renyi = orders(rng), log_uniform(rng, 1e-6, 1e3)
            epsilon = log_uniform(rng, 1e-6, 1e3)
            a, r = arb(alpha), arb(renyi)
            truth = tight_delta(a, r, arb(epsilon))
            bound = rdp_to_delta(alpha, renyi, epsilon)
            assert bound == 1.0 or truth <= arb(bound)
            target = log_uniform(rng, 1e-300, 0.5)
            least = r + (1 - 1 / a).log() - (a * arb(target)).log() / (a - 1)
            found = rdp_to_epsilon(alpha, renyi, target)
            assert least <= arb(found)
            assert found <= max(float(least), 0.0) + 1e-12 * (renyi + 1000 / (alpha - 1) + 50)


def test_renyi_conversion_covers_the_gaussian() -> None:
    """The true profile of a Gaussian never exceeds what its Renyi curve says, at any order."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        mu, alpha = log_uniform(rng, 1e-3, 10), 1 + log_uniform(rng, 1e-2, 1e3)
        epsilon, target = log_uniform(rng, 1e-3, 100), log_uniform(rng, 1e-30, 0.4)
        bound = rdp_to_delta(alpha, gdp_to_rdp(mu, alpha), epsilon)
        assert bound == 1.0 or reference.delta(epsilon, mu) <= arb(bound)
        found = rdp_to_epsilon(alpha, gdp_to_rdp(mu, alpha), target)
        assert reference.epsilon_excess(found, mu, target) <= 0


def test_curves_take_the_best_order() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        mu, target = log_uniform(rng, 1e-2, 5), log_uniform(rng, 1e-12, 1e-2)
        best = rdp_curve_to_epsilon(lambda alpha, mu=mu: gdp_to_rdp(mu, alpha), target)
        assert reference.epsilon_excess(best, mu, target) <= 0
        concentrated = zcdp_to_dp(gdp_to_zcdp(mu), target)
        assert best * (1 - 1e-2) <= concentrated <= best * (1 + 1e-9) + 1e-12
        assert reference.epsilon_excess(concentrated, mu, target) <= 0
        rho = gdp_to_zcdp(mu)
        assert concentrated <= rho + 2 * math.sqrt(rho * math.log(1 / target))  # Bun and Steinke 2016, Proposition 1.3


def test_curves_that_are_nowhere_finite() -> None:
    assert rdp_curve_to_epsilon(lambda _: math.inf, 1e-5) == math.inf
    assert rdp_curve_to_epsilon(lambda alpha: math.inf if alpha < 3 else 1.0, 1e-5) < 20
    assert zcdp_to_dp(0.0, 1e-5) == 0.0


def test_gaussian_conversions_are_the_loss() -> None:
    assert gdp_to_dp(0.7, 1e-6) == GaussianLoss(0.7).epsilon(1e-6)
    assert mu_for(1.0, 1e-6) == GaussianLoss.calibrate(1.0, 1e-6).mu
