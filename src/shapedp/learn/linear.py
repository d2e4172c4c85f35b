"""Linear regression under differential privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateEstimator, checked_rows, read_table
from shapedp.learn.moments import Bounds, Reading, one_blas_thread
from shapedp.learn.solvers.linear import SOLVERS, Draws, Problem
from shapedp.learn.solvers.linear.auto import choose
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, one_of, positive
from shapedp.sensitivity import Adjacency

UNITS = (1e-40, 1e40)


class LinearRegression(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Least squares from one pass over the records [x, y], released under (epsilon, delta).

    `feature_bound` and `target_bound` bound |x|_2 and |y| and come from knowledge about the data, never from the
    data: records beyond them are pulled in. `solver` is one of `SOLVERS` or "auto", which chooses by n, d, epsilon
    and delta alone. `sketch_rows` are the rows k of the sketching solvers. The intercept is the weight of a constant
    column, the power of two nearest half the feature bound, inside the accounting.

    Fitted: `coef_`, `intercept_`, `privacy_` (the certificate), `solver_`, and, where they follow from
    what was released, `coef_standard_error_` and `intercept_standard_error_`, for privacy noise and sampling together,
    the bias of shrinking left out.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Lev et al. 2025 (mixing); Wang 2018 (AdaSSP); Sheffet 2017.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        feature_bound: float,
        target_bound: float,
        solver: str = "auto",
        fit_intercept: bool = True,
        adjacency: Adjacency = "zero-out",
        sketch_rows: int | None = None,
        random_state: Any = None,
        unsafe: bool = False,
        progress: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.target_bound = target_bound
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.sketch_rows = sketch_rows
        self.random_state = random_state
        self.unsafe = unsafe
        self.progress = progress

    def fit(self, X: Any, y: Any) -> LinearRegression:
        """Fit to features X (n, d) and a target y (n,) or the name of its column: whatever `read_table` reads."""
        epsilon, delta, adjacency = self._claim()
        bounds = self._bounds()
        rows = None if self.sketch_rows is None else count("sketch_rows", self.sketch_rows)
        one_of("solver", self.solver, ("auto", *SOLVERS))
        data = Reading(read_table(self, X, y), bounds, self.progress)
        order = self.n_features_in_ + bool(self.fit_intercept)
        problem = Problem(data.records, order, bounds, epsilon, delta, adjacency, rows)
        name = choose(problem) if self.solver == "auto" else self.solver
        solver = SOLVERS[name]
        if adjacency not in solver.adjacencies:
            raise ValueError(f"solver {name!r} is for adjacency {', '.join(solver.adjacencies)}, got {adjacency!r}")
        mechanisms = solver.mechanisms(problem)
        certificate = self._certify(mechanisms)
        with one_blas_thread(order < 500):
            found = solver.solve(data.moments, mechanisms, Draws(self._rng(), self.unsafe))
        self.privacy_, self.solver_ = certificate, name
        self._publish(found.weights, found.covariance, bounds.constant)
        return self

    def predict(self, X: Any) -> Floats:
        """X coef_ + intercept_."""
        check_is_fitted(self, "coef_")
        return np.asarray(checked_rows(self, X, reset=False) @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with few records noise is all there is
        return tags

    def _bounds(self) -> Bounds:
        found = {name: positive(name, getattr(self, name)) for name in ("feature_bound", "target_bound")}
        for name, value in found.items():
            if not UNITS[0] < value < UNITS[1]:
                raise ValueError(
                    f"{name} must lie between {UNITS[0]:g} and {UNITS[1]:g}, got {value!r}: use other units"
                )
        feature, target = found.values()
        return Bounds(feature, target, intercept_constant(feature) if self.fit_intercept else 0.0)

    def _publish(self, weights: Floats, covariance: Floats | None, constant: float) -> None:
        """The fitted attributes, from weights of the columns [x, c]."""
        columns = self.n_features_in_
        self.coef_ = weights[:columns].copy()
        self.intercept_ = constant * float(weights[-1]) if constant else 0.0
        for name in ("coef_standard_error_", "intercept_standard_error_"):
            self.__dict__.pop(name, None)
        if covariance is not None:
            errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
            self.coef_standard_error_ = errors[:columns]
            self.intercept_standard_error_ = constant * float(errors[-1]) if constant else 0.0


def intercept_constant(feature_bound: float) -> float:
    """The constant put beside x: the power of two nearest half the feature bound, so that no record is rounded."""
    return float(2.0 ** round(math.log2(feature_bound / 2)))
