"""The published Gaussian and Laplace calibrations: faithful to the page, and worth what is computed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from tests.reference import gaussian as reference

from shapedp import L1, L2, RefutedError, calibrate, certify, recipes


def test_the_classic_scale_is_the_printed_one() -> None:
    mechanism = recipes.classic_gaussian(dim=3, sensitivity=2.0, epsilon=0.5, delta=1e-5)
    assert mechanism.law.scales[0] == pytest.approx(2 * math.sqrt(2 * math.log(1.25e5)) / 0.5, rel=1e-15)
    assert mechanism.recipe == "classic-gaussian"


def test_the_classic_gaussian_is_certified_at_half() -> None:
    mechanism = recipes.classic_gaussian(dim=3, sensitivity=1.0, epsilon=0.5, delta=1e-5)
    assert mechanism.certificate.verdict == "certified"
    assert certify(mechanism, epsilon=0.5, delta=1e-5).verdict == "certified"
    assert mechanism.release(np.zeros(3)).value.shape == (3,)


def test_the_classic_gaussian_is_refuted_at_ten() -> None:
    mechanism = recipes.classic_gaussian(dim=3, sensitivity=1.0, epsilon=10.0, delta=1e-5)
    made = certify(mechanism, epsilon=10.0, delta=1e-5)
    exact = reference.delta(10.0, 10.0 / math.sqrt(2 * math.log(1.25e5)))
    assert made.verdict == "refuted"
    assert made.bracket.lower == pytest.approx(float(exact), rel=1e-11)
    with pytest.raises(RefutedError, match=f"{float(exact):.6g}"):
        mechanism.release(np.zeros(3))
    assert mechanism.release(np.zeros(3), unsafe=True).unsafe


def test_where_the_classic_gaussian_breaks() -> None:
    """At delta = 1e-5 the formula fails from some epsilon between 5 and 10 on, and holds to 1 as its proof says."""
    verdicts = [
        recipes.classic_gaussian(dim=1, sensitivity=1.0, epsilon=e, delta=1e-5).certificate.verdict
        for e in (0.01, 0.1, 0.99, 10.0, 20.0)
    ]
    assert verdicts == ["certified"] * 3 + ["refuted"] * 2


def test_the_analytic_gaussian_is_the_least() -> None:
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-5), (10.0, 1e-5)):
        analytic = recipes.analytic_gaussian(dim=4, sensitivity=3.0, epsilon=epsilon, delta=delta)
        sigma, root = float(analytic.law.scales[0]), reference.mu_for(epsilon, delta)
        assert analytic.certificate.verdict == "certified"
        assert arb(sigma) >= 3 / root
        assert sigma == pytest.approx(float(3 / root), rel=1e-9)
        assert sigma == calibrate("gaussian", L2(3.0, 4), epsilon=epsilon, delta=delta).law.scales[0]
        smaller = type(analytic)(type(analytic.law)(sigma * (1 - 1e-6), 4), analytic.sensitivity, epsilon, delta)
        assert smaller.certificate.verdict == "refuted"


def test_the_laplace_scale_is_the_printed_one() -> None:
    mechanism = recipes.laplace(dim=3, sensitivity=2.0, epsilon=0.5, delta=0.0)
    assert mechanism.law.scales[0] == pytest.approx(4.0, rel=1e-12)
    assert mechanism.law.scales[0] >= 4.0
    assert mechanism.certificate.verdict == "certified"
    assert mechanism.certificate.bracket.upper == 0.0
    assert isinstance(mechanism.sensitivity, L1)


def test_every_recipe_is_listed() -> None:
    assert {"classic-gaussian", "analytic-gaussian", "laplace"} <= set(recipes.RECIPES)
    for name, recipe in recipes.RECIPES.items():
        if name in ("classic-gaussian", "analytic-gaussian", "laplace"):
            assert recipe(dim=2, sensitivity=1.0, epsilon=0.5, delta=1e-5).certificate.verdict == "certified"


@pytest.mark.parametrize("name", ["classic-gaussian", "analytic-gaussian"])
def test_no_gaussian_is_pure(name: str) -> None:
    with pytest.raises(ValueError, match="delta"):
        recipes.RECIPES[name](dim=2, sensitivity=1.0, epsilon=0.5, delta=0.0)
