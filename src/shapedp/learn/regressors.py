"""Linear regression under differential privacy: least squares, and with an l1 or l2 penalty."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from shapedp.boundary.arrays import numbers
from shapedp.boundary.refusals import refusal
from shapedp.learn.base import PrivateRegressor, checked_rows, refuse
from shapedp.learn.moments import Bounds, in_units
from shapedp.learn.register import counted
from shapedp.learn.solvers.cd import CD, SQUARED, UNITS, Columns, Descended, Descent, Penalized, Penalty
from shapedp.learn.solvers.linear import SOLVERS, Solution
from shapedp.learn.solvers.linear.several import SEVERAL, Targets
from shapedp.learn.solvers.linear.several import problem as several_problem
from shapedp.learn.weights import checked_in_memory, factors, weight_bound, weighted
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, nonnegative, one_of, positive, probability, vector
from shapedp.tables.blocks import finite_records, same_length, target_of

RESOLVED = 4.0
PUBLISHED = ("coef_", "intercept_", "coef_standard_error_", "intercept_standard_error_")


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(PrivateRegressor):
    """Least squares on records [x, y], released under (epsilon, delta); y may hold several targets.

    The intercept is the weight of a constant column, the power of two nearest half the feature bound; it is inside
    the accounting.

    Parameters
    ----------
    epsilon, delta: the claim.
    feature_bound, target_bound: bounds on |x|_2 and |y|, from knowledge about the data, never from the data. Records
        beyond them are scaled down to them. For several targets a number (for each), or one per target.
    solver: one of `shapedp.learn.solvers.linear.SOLVERS`, or "auto": "refined", and "suffstats" for a stream that can
        be read only once and for several targets.
    fit_intercept: whether there is a constant term.
    adjacency: what a neighbour is, "zero-out" or "replace".
    sketch_rows: the rows of the sketch, for solvers that make one.
    weight_bound: a bound on sample weights, from knowledge about the data; needed for `sample_weight`.
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.
    progress: show a progress bar.

    Fitted: `coef_`, `intercept_`, `privacy_` (the certificate), `solver_` and, where they follow from what was
    released, `coef_standard_error_` and `intercept_standard_error_`: of privacy noise and sampling together, without
    the bias of shrinking.

    With K targets `coef_` is (K, d) and `intercept_` (K,): one release of X^T X, X^T Y and the squares of Y serves all.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Lev et al. 2025 (mixing); Wang 2018 (AdaSSP); Sheffet 2017.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 10_000)[:, None]
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0, random_state=0)
    >>> model.fit(x, 0.5 * x[:, 0]).coef_.round(1)
    array([0.5])
    >>> model.privacy_.verdict
    'certified'
    """

    feature_bound: float
    target_bound: ArrayLike
    solver: str = "auto"
    fit_intercept: bool = True
    sketch_rows: int | None = None
    weight_bound: float | None = None

    @counted
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegression:
        """Fit to features X (n, d) and a target y (n,) or the name of its column: whatever `read_table` reads.

        Several targets y (n, K), and weights, need dense records in memory.

        `sample_weight` (n,), between 0 and `weight_bound`, multiplies squared residuals; larger weights are clipped,
        and a record whose weight is negative or no number counts as none. A weight is private, as its record is.
        """
        self._claim()
        one_of("solver", self.solver, ("auto", *SOLVERS))
        self._weighted = sample_weight is not None
        if count_targets(y, self.target_bound) > 1:
            return self._fit_several(X, y, sample_weight)
        bounds = Bounds.of(self.feature_bound, self.target_bound, intercept=self.fit_intercept)
        rows = None if self.sketch_rows is None else count("sketch_rows", self.sketch_rows)
        if sample_weight is None:
            found = self._least_squares(self.solver, X, y, bounds, rows)
        else:
            bound = weight_bound(self.weight_bound)
            table = weighted(checked_in_memory(self, X, weighted=True), y, sample_weight, bound, bounds)
            found = self._solution(self.solver, table, Bounds(bounds.design, bounds.target), rows)
        self._publish(found, bounds.constant)
        return self

    def _fit_several(self, X: Any, y: Any, sample_weight: Any) -> LinearRegression:
        """Fit to several targets by one release."""
        if self.solver not in ("auto", "suffstats"):
            raise ValueError(refusal("learn", "several-solver", solver=self.solver))
        ends = target_bounds(self.target_bound, count_targets(y, self.target_bound))
        bounds = Bounds.of(self.feature_bound, 1.0, intercept=self.fit_intercept)
        bound = 1.0 if sample_weight is None else weight_bound(self.weight_bound)
        rows = checked_in_memory(self, X, weighted=self._weighted)
        given = np.ones(len(rows)) if sample_weight is None else sample_weight
        targets = target_rows(y, len(ends))
        same_length(len(rows), len(targets))
        data = Targets.of(rows, targets, ends, bounds, factors(given, len(rows), bound))
        problem = several_problem(data, self._claim())
        self.solver_ = "suffstats"
        found: Any = self._solved({"suffstats": SEVERAL}, "suffstats", problem, lambda: data)
        models = []
        for one in found:
            self._publish(one, bounds.constant)
            models.append({name: getattr(self, name) for name in PUBLISHED})
        for name in PUBLISHED:
            values = np.array([model[name] for model in models])
            setattr(self, name, (values.T * ends).T)
        return self

    def _publish(self, found: Solution, constant: float) -> None:
        """The fitted attributes, from weights of the columns [x, c]."""
        columns = self.n_features_in_
        self.coef_ = found.weights[:columns].copy()
        self.intercept_ = constant * float(found.weights[-1]) if constant else 0.0
        for name in ("coef_standard_error_", "intercept_standard_error_"):
            self.__dict__.pop(name, None)
        self._resolved = found.resolved
        if found.covariance is not None:
            errors = np.sqrt(np.maximum(np.diag(found.covariance), 0.0))
            self.coef_standard_error_ = errors[:columns]
            self.intercept_standard_error_ = constant * float(errors[-1]) if constant else 0.0

    def confidence_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Both ends of an interval for each coefficient, for privacy noise and sampling together.

        Parameters
        ----------
        level: the probability, of noise and records both drawn anew, that the interval holds the coefficient of the
            linear model that the records follow.

        Returns
        -------
        The lower and the upper ends, like `coef_`. From what was released: it costs nothing.

        Refused where shrinking, whose bias no interval knows, plays a part: for other solvers than "refined", and where
        the least eigenvalue of the released X^T X is below four times the noise; and where noise hides the size of the
        residuals. Not covered are records that were
        pulled into the bounds, and residuals that are not symmetric.
        """
        check_is_fitted(self, "coef_")
        if not 0 < probability("level", level) < 1:
            raise ValueError(f"level must lie in (0, 1), got {level!r}")
        if self._weighted:
            raise ValueError(refusal("learn", "weighted-interval"))
        if self._resolved < RESOLVED:
            raise ValueError(refusal("learn", "no-interval"))
        width = float(special.ndtri((1 + level) / 2)) * self.coef_standard_error_
        return self.coef_ - width, self.coef_ + width

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with few records noise is all there is
        tags.target_tags.multi_output = self.solver in ("auto", "suffstats")
        return tags


def count_targets(y: Any, bound: Any) -> int:
    """The number of columns of y: by its shape, and for a list, which has none, by how many bounds there are.

    Guarantee: from types and parameters alone; an entry of a list is not looked at.
    """
    if isinstance(y, list | tuple):
        return max(np.size(bound), 1)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return int(shape[1]) if len(shape) == 2 else 1


def target_rows(y: Any, targets: int) -> Any:
    """Several targets as an array; an entry of a list that does not hold so many is missing, as is its record."""
    if isinstance(y, list | tuple):
        rows = [one.tolist() if isinstance(one, np.ndarray) else one for one in y]
        y = [one if isinstance(one, list | tuple) and len(one) == targets else [np.nan] * targets for one in rows]
    return numbers(y)


def target_bounds(given: Any, targets: int) -> Floats:
    """One bound per target, from a number or a vector."""
    ends = np.full(targets, in_units("target_bound", given)) if np.ndim(given) == 0 else vector("target_bound", given)
    if ends.size != targets:
        raise ValueError(f"target_bound must be a number or hold one per target ({targets}), got {ends.size}")
    return np.array([in_units("target_bound", end) for end in ends.tolist()])


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

    @counted
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
            return Penalized(descent, columns, SQUARED, self._penalty(columns.records))

        found = self._solved({"cd": CD}, "cd", descent, data)
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
            text = "the last pass still moved the weights by more than its noise: allow more passes or a longer step"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)


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

    Examples
    --------
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

    Parameters, fitted attributes, guarantee and reference are those of `Lasso`. Where second moments are small
    enough to be released at once, `LinearRegression` needs less noise; this one clips derivatives instead of rows, so
    it suits features of very different sizes.

    Examples
    --------
    >>> import numpy as np
    >>> claim = {"epsilon": 2.0, "delta": 1e-6}
    >>> x = np.linspace(-1, 1, 10_000)[:, None]
    >>> model = Ridge(**claim, feature_bounds=1.0, target_bound=1.0, random_state=0).fit(x, 0.5 * x[:, 0])
    >>> model.predict([[1.0]]).round(1)
    array([0.5])
    """

    def _penalty(self, records: int) -> Penalty:
        return Penalty(l2=float(self.alpha) / records)
