"""Linear regression with an l1 or l2 penalty, by private coordinate descent."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from shapedp.learn.base import PrivateRegressor, checked_rows, refuse
from shapedp.learn.solvers.cd import CD, UNITS, Columns, Descended, Descent, Penalized, Penalty, Squared
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative, positive, vector
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


@dataclass(kw_only=True, eq=False, repr=False)
class CoordinateDescentRegressor(PrivateRegressor, ABC):
    """What `Lasso` and `Ridge` share."""

    alpha: float = field(default=1.0, kw_only=False)
    feature_bounds: ArrayLike
    target_bound: float
    passes: int = 20
    step: float = 1.0
    clip: float = 1.0
    noise: str = "objective"
    share: float = 0.1
    mean_squares: ArrayLike | None = None
    fit_intercept: bool = True

    @abstractmethod
    def _penalty(self, records: int) -> Penalty:
        """The regulariser of each coordinate."""

    def fit(self, X: Any, y: Any, **unsupported: Any) -> CoordinateDescentRegressor:
        """Fit to features X (n, d), dense or sparse, and a target y (n,)."""
        refuse(unsupported)
        claim = self._claim()
        target_bound = positive("target_bound", self.target_bound)
        public = None if self.mean_squares is None else tuple(vector("mean_squares", self.mean_squares).tolist())
        descent = Descent(*claim, self.passes, self.step, self.clip, target_bound, self.noise, self.share, public)
        nonnegative("alpha", self.alpha)
        rows = checked_rows(self, X)
        bounds = feature_bounds(self.feature_bounds, rows.shape[1])
        finite, target = finite_records(rows, target_of(y, rows.shape[0]))
        target = np.clip(target, -target_bound, target_bound)

        def data() -> Penalized:
            columns = Columns.of(finite, target, bounds, intercept=bool(self.fit_intercept))
            return Penalized(descent, columns, Squared(), self._penalty(columns.records))

        found = self._solved("cd", CD, descent, data)
        assert isinstance(found, Descended)
        self._publish(found, bounds.size)
        return self

    def _publish(self, found: Descended, features: int) -> None:
        """The fitted attributes, and a warning where the weights have not settled."""
        self.mean_squares_ = found.means[:features]
        self.coef_path_ = found.path[:, :features]
        self.coef_ = found.weights[:features].copy()
        self.intercept_ = float(found.weights[-1]) if self.fit_intercept else 0.0
        self.n_iter_ = len(found.path)
        if not found.settled:
            warnings.warn(
                "the last pass still moved the weights by more than its noise: allow more passes or a longer step",
                ConvergenceWarning,
                stacklevel=3,
            )


@dataclass(kw_only=True, eq=False, repr=False)
class Lasso(CoordinateDescentRegressor):
    """Least |y - Xw|^2/(2n) + alpha |w|_1 by private proximal coordinate descent.

    Every pass releases, for each coordinate, the sum over records of the partial derivative, clipped to
    `clip` * target_bound * sqrt(mean of x_i^2). The step is `step` over that mean. The means are released first, for
    `share` of the budget, unless `mean_squares` gives public ones.

    Parameters
    ----------
    alpha: the strength of the penalty.
    epsilon, delta: the claim.
    feature_bounds, target_bound: bounds on |x_i| (a number, or one per feature) and on |y|, from knowledge about the
        data, never from the data. Values beyond them are clipped.
    passes, step, clip, share, mean_squares: see above.
    noise: what the noise of a pass minimises: the rise of the "objective", the error of the "parameter" (improved
        DP-CD), or nothing ("equal": DP-CD); see `Descent`.
    fit_intercept: whether there is a constant term, which is not penalised.
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.
    progress: show a progress bar.

    Fitted: `coef_`, `intercept_`, `coef_path_` (one row per pass), `mean_squares_`, `n_iter_`, `privacy_` (the
    certificate of every release). A ConvergenceWarning follows from released weights alone.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Mangold, Bellet, Salmon and Tommasi 2022; i.n.i.d. noise paper, section VI.A and appendix C.

    Example
    -------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 10_000)[:, None]
    >>> model = Lasso(0.01, epsilon=2.0, delta=1e-6, feature_bounds=1.0, target_bound=1.0, random_state=0)
    >>> model.fit(x, 0.5 * x[:, 0]).coef_.round(1)
    array([0.5])
    """

    def _penalty(self, records: int) -> Penalty:
        return Penalty(l1=float(self.alpha))


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(CoordinateDescentRegressor):
    """Least |y - Xw|^2 + alpha |w|_2^2 by private proximal coordinate descent, alpha as scikit-learn counts it.

    Parameters and fitted attributes are those of `Lasso`. Where second moments are small enough to be released at
    once, `LinearRegression` needs less noise; this one clips derivatives instead of rows, so it suits features of
    very different sizes.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Mangold, Bellet, Salmon and Tommasi 2022; i.n.i.d. noise paper, section VI.A and appendix C.

    Example
    -------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 10_000)[:, None]
    >>> model = Ridge(1.0, epsilon=2.0, delta=1e-6, feature_bounds=1.0, target_bound=1.0, random_state=0)
    >>> model.fit(x, 0.5 * x[:, 0]).coef_.round(1)
    array([0.5])
    """

    def _penalty(self, records: int) -> Penalty:
        return Penalty(l2=float(self.alpha) / records)
