"""Faults of Poisson and Gamma regression, elastic net and weights, found by review."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from shapedp.learn import ElasticNet, GammaRegressor, PoissonRegressor, RepeatedFitsWarning
from shapedp.learn.moments import Bounds
from shapedp.learn.weights import scaled
from shapedp.numerics import convex

CLAIM = {"epsilon": 5.0, "delta": 1e-3, "feature_bound": 1.0, "random_state": 0}
X = np.linspace(-0.5, 0.5, 60).reshape(20, 3)
Y = np.arange(40.0).reshape(20, 2) % 7

pytestmark = pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")


@pytest.mark.parametrize("kind", [PoissonRegressor, GammaRegressor])
@pytest.mark.parametrize("odd", [1e300, -1e300, 5e-324, 0.0, math.inf, math.nan])
def test_no_target_makes_a_warning(kind, odd):
    """A target above 1e308 times its bound overflowed, and numpy's warning told of it."""
    target = Y[:, 0].copy()
    target[3] = odd
    model = kind(**CLAIM, target_bound=1e-20, clip=1e-20 if kind is PoissonRegressor else None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", category=RepeatedFitsWarning)
        found = model.fit(X, target)
    if odd == 1e300:
        target[3] = 1e-20
        np.testing.assert_array_equal(found.coef_, model.fit(X, target).coef_)


@pytest.mark.parametrize("alpha", [1e200, 1.7e308])
def test_a_penalty_that_would_overflow_is_refused_before_anything_is_released(alpha):
    """It was refused by scikit-learn, after the release."""
    x = X.copy()
    with pytest.raises(ValueError, match="alpha must lie below 1e\\+200"):
        ElasticNet(alpha, **CLAIM, target_bound=7.0).fit(x, Y[:, 0])
    first = ElasticNet(1e199, **CLAIM, target_bound=7.0).fit(x, Y[:, 0])
    assert (first.coef_ == 0).all()
    with pytest.raises(ValueError, match="alpha must lie below"):
        first.refit(alpha=alpha)


def test_rows_stored_by_columns_stay_within_their_bound():
    """Norms added up one by one: at 20,000 columns rows left the bound by 26 units in the last place."""
    rows = np.asfortranarray(50 * np.random.default_rng(0).uniform(0.9, 1.0, (3, 20_000)))
    for row in scaled(rows, Bounds(1.0, 1.0), np.ones(3)):
        assert sum(Fraction(one) ** 2 for one in row.tolist()) <= 1 + Fraction(16, 2**53)


@pytest.mark.parametrize("seed", [5, 9, 11])
def test_steep_losses_are_minimised_without_descent(monkeypatch, seed):
    """Newton's method was given up after 100 turns, and gradient descent took 1e7 steps and more: hours."""

    def never(*given):
        raise AssertionError("gradient descent")

    monkeypatch.setattr(convex, "_descent", never)
    rng, bound = np.random.default_rng(seed), 1.5e6
    x = rng.standard_normal((40, 10)) * 10.0 ** rng.uniform(-3, 1)
    y = rng.choice([0.0, bound, bound * 1e-6, bound * 0.5, bound * 1e6], 40)
    claim = {"epsilon": 600.0, "delta": 1e-5, "feature_bound": 1.0, "random_state": seed}
    assert np.isfinite(PoissonRegressor(**claim, target_bound=bound).fit(x, y).coef_).all()
