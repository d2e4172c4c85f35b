"""Objective perturbation with product noise, by the estimators."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from shapedp import UndecidedError
from shapedp.learn import HuberSVC, LogisticRegression

X = np.random.default_rng(0).standard_normal((400, 6))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = (X[:, 0] > 0).astype(int)
OPTIONS = {"epsilon": 1.0, "delta": 1e-5, "feature_bound": 1.0, "classes": [0, 1], "solver": "objective"}


@pytest.mark.parametrize("estimator", [LogisticRegression, HuberSVC])
def test_product_noise_in_the_objective_runs_only_as_unsafe(estimator):
    with pytest.raises(UndecidedError):
        estimator(**OPTIONS, noise="product-noise").fit(X, Y)
    fitted = estimator(**OPTIONS, noise="product-noise", unsafe=True, random_state=0).fit(X, Y)
    assert fitted.privacy_.verdict != "certified"
    assert fitted.privacy_.bracket.upper > 1e3 * 1e-5
    assert fitted.score(X, Y) > 0.5


def test_a_regularization_below_that_of_algorithm_3_is_refused():
    with pytest.raises(ValueError, match=r"at least 0\.0031"):
        LogisticRegression(**OPTIONS, noise="product-noise", unsafe=True, regularization=1e-6).fit(X, Y)
