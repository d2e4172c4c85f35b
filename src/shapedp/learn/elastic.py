"""Least squares with an l1 and an l2 penalty, computed from released second moments: penalties cost nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import clone
from sklearn.linear_model import ElasticNet as PlainElasticNet
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateRegressor, refuse
from shapedp.learn.moments import HUGE, Bounds
from shapedp.learn.register import counted
from shapedp.learn.solvers.linear.suffstats import NoisyMoments, cleaned
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative, real


@dataclass(kw_only=True, eq=False, repr=False)
class ElasticNet(PrivateRegressor):
    """Least |y - Xw - c|^2/(2n) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2), under (epsilon, delta).

    What is released are second moments, once, as by `LinearRegression(solver="suffstats")`; the penalties are worked in
    afterwards. So any number of them can be tried on one release: see `refit`.

    Parameters
    ----------
    alpha, l1_ratio: the penalty, as scikit-learn counts it: l1_ratio = 1 is the lasso, 0 is ridge regression. The
        intercept is not penalised.
    epsilon, delta: the claim.
    feature_bound, target_bound: bounds on |x|_2 and |y|, from knowledge about the data, never from the data. Records
        beyond them are scaled down to them.
    fit_intercept: whether there is a constant term.
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.
    progress: show a progress bar.

    Fitted: `coef_`, `intercept_`, `privacy_` (the certificate).

    Guarantee: see `PrivateEstimator`; weights follow from what was released.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(20_000, 2))
    >>> claim = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 1.5, "target_bound": 1.0}
    >>> model = ElasticNet(0.05, l1_ratio=1.0, **claim, random_state=0)
    >>> print(model.fit(x, 0.5 * x[:, 0]).coef_.round(1) + 0)
    [0.3 0. ]
    >>> model.refit(alpha=1.0).coef_
    array([0., 0.])
    """

    alpha: float = field(default=1.0, kw_only=False)
    l1_ratio: float = 0.5
    feature_bound: float
    target_bound: float
    fit_intercept: bool = True

    @counted
    def fit(self, X: Any, y: Any, **unsupported: Any) -> ElasticNet:
        """Fit to features X (n, d) and a target y (n,) or the name of its column: whatever `read_table` reads."""
        refuse(unsupported)
        self._claim()
        self._penalty()
        bounds = Bounds.of(self.feature_bound, self.target_bound, intercept=self.fit_intercept)
        found = self._least_squares("suffstats", X, y, bounds, None)
        self._released, self._records, self._constant = found.moments, found.records, bounds.constant
        self._publish()
        return self

    def refit(self, **penalty: float) -> ElasticNet:
        """A model of the same release with another `alpha` or `l1_ratio`: it costs nothing, and shares `privacy_`."""
        check_is_fitted(self, "coef_")
        if not set(penalty) <= {"alpha", "l1_ratio"}:
            raise TypeError(f"refit takes alpha and l1_ratio, got {', '.join(sorted(penalty))}")
        other: ElasticNet = clone(self).set_params(**penalty)
        other._penalty()
        other.__dict__ |= {name: one for name, one in vars(self).items() if name not in other.__dict__}
        other._publish()
        return other

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with few records noise is all there is
        return tags

    def _penalty(self) -> tuple[float, float]:
        """alpha and l1_ratio, checked."""
        ratio = real("l1_ratio", self.l1_ratio)
        if not 0 <= ratio <= 1:
            raise ValueError(f"l1_ratio must lie in [0, 1], got {self.l1_ratio!r}")
        alpha = nonnegative("alpha", self.alpha)
        if not alpha < HUGE:  # its product with the number of records is finite
            raise ValueError(f"alpha must lie below {HUGE:g}, got {self.alpha!r}")
        return alpha, ratio

    def _publish(self) -> None:
        """The weights, from what was released."""
        alpha, ratio = self._penalty()
        noisy, free = self._released, int(self._constant > 0)
        weights = penalized(noisy, alpha * self._records, ratio, free)
        self.coef_ = weights[: len(weights) - free]
        self.intercept_ = self._constant * float(weights[-1]) if free else 0.0


def penalized(noisy: NoisyMoments, strength: float, ratio: float, free: int) -> Floats:
    """Least w^T A w/2 - b.w + strength (ratio |w|_1 + (1 - ratio)/2 |w|^2), the last `free` (0 or 1) weights free.

    A has its eigenvalues cleaned of noise (`suffstats.cleaned`), which leaves it positive definite.
    """
    values, vectors = np.linalg.eigh(noisy.design)
    matrix, sums = (vectors * cleaned(values, noisy.edge)[0]) @ vectors.T, noisy.cross
    if free:
        beside, corner = matrix[:-1, -1], float(matrix[-1, -1])
        inner, left = matrix[:-1, :-1] - np.outer(beside, beside) / corner, sums[:-1] - beside * (sums[-1] / corner)
        weights = _least(inner, left, strength, ratio)
        return np.append(weights, (sums[-1] - beside @ weights) / corner)
    return _least(matrix, sums, strength, ratio)


def _least(matrix: Floats, sums: Floats, strength: float, ratio: float) -> Floats:
    """By scikit-learn's coordinate descent on a square root of the matrix."""
    if strength * ratio == 0:
        return np.asarray(linalg.solve(matrix + strength * np.eye(len(sums)), sums, assume_a="pos"))
    root = linalg.cholesky(matrix)
    target = linalg.solve_triangular(root, sums, trans="T")
    size = math.sqrt(float(np.trace(matrix)))  # numbers near 1
    plain = PlainElasticNet(
        strength / (len(sums) * size**2), l1_ratio=ratio, fit_intercept=False, tol=1e-10, max_iter=100_000
    )
    return np.asarray(plain.fit(root / size, target / size).coef_)
