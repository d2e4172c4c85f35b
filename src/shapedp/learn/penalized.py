"""Linear regression with an l1 or l2 penalty, by private coordinate descent."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateEstimator, checked_rows
from shapedp.learn.progress import bar
from shapedp.learn.solvers.cd import UNITS, Columns, Descent, Penalty, Squared
from shapedp.learn.solvers.erm.estimator import refuse
from shapedp.mechanisms import Additive
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative, positive, vector
from shapedp.sensitivity import Adjacency
from shapedp.tables.blocks import finite_records, target_of


def feature_bounds(given: ArrayLike, columns: int) -> Floats:
    """One bound per feature, from a number or a vector."""
    bounds = (
        np.full(columns, positive("feature_bounds", given))
        if np.ndim(given) == 0
        else vector("feature_bounds", given, least=0.0, strict=True)
    )
    if bounds.size != columns:
        raise ValueError(f"feature_bounds must be a number or hold one per feature ({columns}), got {bounds.size}")
    if not UNITS[0] < bounds.min() <= bounds.max() < UNITS[1]:
        raise ValueError(f"feature_bounds must lie between {UNITS[0]:g} and {UNITS[1]:g}: use other units")
    return bounds


class CoordinateDescentRegressor(RegressorMixin, PrivateEstimator, ABC):  # type: ignore[misc]
    """What `Lasso` and `Ridge` share."""

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float,
        delta: float,
        feature_bounds: ArrayLike,
        target_bound: float,
        passes: int = 20,
        step: float = 1.0,
        clip: float = 1.0,
        noise: str = "objective",
        share: float = 0.1,
        mean_squares: ArrayLike | None = None,
        fit_intercept: bool = True,
        adjacency: Adjacency = "zero-out",
        random_state: Any = None,
        unsafe: bool = False,
        progress: bool = False,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.target_bound = target_bound
        self.passes = passes
        self.step = step
        self.clip = clip
        self.noise = noise
        self.share = share
        self.mean_squares = mean_squares
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.random_state = random_state
        self.unsafe = unsafe
        self.progress = progress

    @abstractmethod
    def _penalty(self, records: int) -> Penalty:
        """The regulariser of each coordinate."""

    def fit(self, X: Any, y: Any, **unsupported: Any) -> CoordinateDescentRegressor:
        """Fit to features X (n, d), dense or sparse, and a target y (n,)."""
        refuse(unsupported)
        epsilon, delta, adjacency = self._claim()
        target_bound = positive("target_bound", self.target_bound)
        public = None if self.mean_squares is None else tuple(vector("mean_squares", self.mean_squares).tolist())
        descent = Descent(
            epsilon,
            delta,
            adjacency,
            passes=self.passes,
            step=self.step,
            clip=self.clip,
            unit=target_bound,
            noise=self.noise,
            share=self.share,
            moments=public,
        )
        nonnegative("alpha", self.alpha)
        rows = checked_rows(self, X)
        target = target_of(y, rows.shape[0])
        bounds = feature_bounds(self.feature_bounds, rows.shape[1])
        finite, target = finite_records(rows, target)
        columns = Columns.of(
            finite, np.clip(target, -target_bound, target_bound), bounds, intercept=bool(self.fit_intercept)
        )
        return self._descend(columns, descent)

    def _descend(self, columns: Columns, descent: Descent) -> CoordinateDescentRegressor:
        rng, response = self._rng(), Squared()

        def release(mechanism: Additive, query: Floats) -> Floats:
            return np.asarray(mechanism.release(query, rng=rng, unsafe=self.unsafe).value)

        means, first = descent.means(columns, release)
        schedule = descent.schedule(means, columns.records, response.curvature_bound, intercept=columns.intercept)
        certificate = self._certify([*first, *schedule.plan()])
        with bar(descent.passes, " passes", self.progress) as advance:
            path = schedule.run(columns, response, self._penalty(columns.records), release, advance)
        features = columns.x.shape[1]
        self.privacy_, self.mean_squares_ = certificate, means[:features]
        self.coef_path_ = path[:, :features]
        self.coef_ = path[-1, :features].copy()
        self.intercept_ = float(path[-1, -1]) if columns.intercept else 0.0
        self.n_iter_ = descent.passes
        if not schedule.settled(path):
            warnings.warn(
                "the last pass still moved the weights by more than its noise: allow more passes or a longer step",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def predict(self, X: Any) -> Floats:
        """X coef_ + intercept_."""
        check_is_fitted(self)
        return np.asarray(checked_rows(self, X, reset=False) @ self.coef_ + self.intercept_)


class Lasso(CoordinateDescentRegressor):
    """Least |y - Xw|^2/(2n) + alpha |w|_1 by private proximal coordinate descent.

    `feature_bounds` (a number, or one per feature) and `target_bound` bound |x_i| and |y| and come from knowledge
    about the data, never from the data: what lies beyond is pulled in. Every pass releases, for each coordinate, the
    sum over records of the partial derivative clipped to `clip` * target_bound * sqrt(mean of x_i^2); the step is
    `step` over that mean. The means are released first, for `share` of the budget, unless `mean_squares` gives
    public ones. `noise` says what the noise of a pass minimises: the rise of the "objective", the error of the
    "parameter" (improved DP-CD), or nothing ("equal": DP-CD); see `Descent`.

    Fitted: `coef_`, `intercept_` (not penalised), `coef_path_` (one row per pass), `mean_squares_`, `n_iter_`,
    `privacy_` (the certificate of every release). A ConvergenceWarning follows from released weights alone.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Mangold, Bellet, Salmon and Tommasi 2022; i.n.i.d. noise paper, section VI.A and appendix C.
    """

    def _penalty(self, records: int) -> Penalty:
        return Penalty(l1=float(self.alpha))


class Ridge(CoordinateDescentRegressor):
    """Least |y - Xw|^2 + alpha |w|_2^2 by private proximal coordinate descent, alpha as scikit-learn counts it.

    Parameters, fitted attributes and guarantee are those of `Lasso`. Where second moments are small enough to
    be released at once, `LinearRegression` needs less noise; this one clips derivatives instead of rows, so it suits
    features of very different sizes.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Mangold, Bellet, Salmon and Tommasi 2022; i.n.i.d. noise paper, section VI.A and appendix C.
    """

    def _penalty(self, records: int) -> Penalty:
        return Penalty(l2=float(self.alpha) / records)
