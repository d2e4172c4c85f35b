"""Generalised linear models with a logarithmic link: Poisson regression of counts, Gamma regression of amounts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateModel, checked_rows, refuse
from shapedp.learn.losses import BASE, Gamma, LinearLoss, Poisson
from shapedp.learn.moments import Bounds
from shapedp.learn.register import counted
from shapedp.learn.solvers.erm.objective import CERTIFYING
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk, read_records
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import positive
from shapedp.numerics.outward import WIDER
from shapedp.tables.blocks import target_of


@dataclass(kw_only=True, eq=False, repr=False)
class LogLinearRegressor(RegressorMixin, PrivateModel, ABC):  # type: ignore[misc]
    """What `PoissonRegressor` and `GammaRegressor` share: log E y = x.w + c, by objective perturbation."""

    least: ClassVar[float]  # in units of target_bound: valid targets below it are raised to it
    feature_bound: float
    target_bound: float
    clip: float | None = None
    regularization: float | None = None
    fit_intercept: bool = True

    @abstractmethod
    def _loss(self, target_bound: float) -> LinearLoss:
        """The loss of a score and a target in units of the bound."""

    @counted
    def fit(self, X: Any, y: Any, **unsupported: Any) -> Any:
        """Fit to features X (n, d), dense or sparse, and a target y (n,)."""
        refuse(unsupported)
        claim = self._claim()
        bounds = Bounds.of(self.feature_bound, self.target_bound, intercept=self.fit_intercept)
        loss = self._loss(bounds.target)
        strength = 1.0 if self.regularization is None else positive("regularization", self.regularization)
        rows = checked_rows(self, X)
        target = target_of(y, rows.shape[0])
        sizes = (len(target), self.n_features_in_ + (bounds.constant > 0), 1)
        problem = Problem(loss, *sizes, bounds.design, strength, *claim, sparse.issparse(rows), bounds)
        if self.regularization is None:
            problem = CERTIFYING.completed(problem)
        found = self._solved({"objective": CERTIFYING}, "objective", problem, lambda: self._risk(problem, rows, target))
        weights, base = found.weights[:, 0], math.log(bounds.target) - BASE
        self.coef_ = weights[: self.n_features_in_].copy()
        self.intercept_ = base + bounds.constant * float(weights[-1]) if bounds.constant else base
        return self

    def _risk(self, problem: Problem, rows: Any, target: Floats) -> Risk:
        """The records; one whose target is no number, or none that the model knows, counts as none."""
        valid = np.isfinite(target) & ((target >= 0) if self.least == 0 else (target > 0))
        found = read_records(rows, valid[:, None].astype(np.float64), problem.bounds)
        bound = problem.bounds.target
        inside = np.minimum(np.where(valid, target, 0.0), bound)  # first: a quotient that overflows would warn
        return Risk(problem, Records(found.x, np.clip(inside / bound, self.least, 1.0)[:, None]))

    def predict(self, X: Any) -> Floats:
        """exp(X coef_ + intercept_), at most `target_bound`."""
        check_is_fitted(self, "coef_")
        score = np.asarray(checked_rows(self, X, reset=False) @ self.coef_ + self.intercept_)
        return np.asarray(np.exp(np.minimum(score, math.log(self.target_bound))))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with few records noise is all there is
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PoissonRegressor(LogLinearRegressor):
    """Poisson regression of counts, log E y = x.w + c, released under (epsilon, delta) by objective perturbation.

    Every residual m(x) - y enters the objective's gradient clipped to [-clip, clip], and means are at most
    `target_bound`; the objective stays convex. Its minimum with a random linear term, and a little noise, is released.

    Parameters
    ----------
    epsilon, delta: the claim.
    feature_bound: a bound on |x|_2, from knowledge about the data, never from the data. Records beyond it are scaled
        down to it.
    target_bound: the largest count, known beforehand. Larger ones are clipped to it.
    clip: see above; None: 1 + 3 sqrt(target_bound), about what counts of that mean differ from it, if that is less
        than `target_bound`.
    regularization: Lambda in mean loss/clip + (Lambda/2) |w|_2^2; None chooses it from the sizes and the claim.
    fit_intercept: whether there is a constant term beside log(target_bound) - 2. Like the others it is penalised.
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.
    progress: without effect: the number of iterations depends on the records and is not shown.

    Fitted: `coef_`, `intercept_`, `privacy_` (the certificate).

    Guarantee: see `PrivateEstimator`. A record with a negative target, a NaN or an infinity counts as none. One record
    adds slope(w) x to the gradient with |slope| <= clip, and a matrix of rank one, at most target_bound |x|^2, to its
    derivative: the terms of `ObjectivePerturbation` with signed losses.
    Reference: Kifer, Smith and Thakurta 2012; Iyengar et al. 2019; Redberg, Koskela and Wang 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(20_000, 1))
    >>> y = rng.poisson(np.exp(x[:, 0] + 1))
    >>> model = PoissonRegressor(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=20, random_state=0)
    >>> model.fit(x, y).coef_.round(1), model.privacy_.verdict
    (array([1.]), 'certified')
    """

    least: ClassVar[float] = 0.0

    def _loss(self, target_bound: float) -> LinearLoss:
        default = 1 + 3 * math.sqrt(target_bound)
        clip = default if self.clip is None else positive("clip", self.clip)
        return Poisson(min(clip / target_bound, 1.0))


@dataclass(kw_only=True, eq=False, repr=False)
class GammaRegressor(LogLinearRegressor):
    """Gamma regression of positive amounts, log E y = x.w + c, under (epsilon, delta) by objective perturbation.

    Every y/m(x) - 1 enters the objective's gradient, at most `clip`; the objective stays convex.

    Parameters
    ----------
    target_bound: the largest amount, known beforehand. Larger ones are clipped to it; the unit of the model follows
        from it, what one record can change does not. Amounts below 2^-20 of it are raised to that.
    clip: see above, at least 1; None: 3.
    Others, fitted attributes and reference: as of `PoissonRegressor`. Predictions are at most `target_bound`.

    Guarantee: see `PrivateEstimator`. A record whose target is not above 0, a NaN or an infinity counts as none. One
    record adds slope(w) x to the gradient with |slope| <= clip, and a matrix of rank one, at most (1 + clip) |x|^2, to
    its derivative: the terms of `ObjectivePerturbation` with signed losses.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(20_000, 1))
    >>> y = np.exp(x[:, 0] + 5) * rng.gamma(2, 0.5, 20_000)
    >>> model = GammaRegressor(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=2000, random_state=0)
    >>> model.fit(x, y).coef_.round(1), model.privacy_.verdict
    (array([1.]), 'certified')
    """

    least: ClassVar[float] = WIDER

    def _loss(self, target_bound: float) -> LinearLoss:
        return Gamma(3.0 if self.clip is None else positive("clip", self.clip))
