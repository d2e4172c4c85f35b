"""Linear regression under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shapedp.learn.base import PrivateRegressor, read_table
from shapedp.learn.moments import Bounds, Reading, one_blas_thread
from shapedp.learn.solvers.linear import SOLVERS, Problem, Solution
from shapedp.learn.solvers.linear.auto import choose
from shapedp.numerics.checks import count, one_of


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(PrivateRegressor):
    """Least squares from one pass over the records [x, y], released under (epsilon, delta).

    The intercept is the weight of a constant column, the power of two nearest half the feature bound; it is inside
    the accounting.

    Parameters
    ----------
    epsilon, delta: the claim.
    feature_bound, target_bound: bounds on |x|_2 and |y|, from knowledge about the data, never from the data. Records
        beyond them are scaled down to them.
    solver: one of `shapedp.learn.solvers.linear.SOLVERS`, or "auto", which chooses by n, d, epsilon and delta alone.
    fit_intercept: whether there is a constant term.
    adjacency: what a neighbour is, "zero-out" or "replace".
    sketch_rows: the rows of the sketch, for solvers that make one.
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.
    progress: show a progress bar.

    Fitted: `coef_`, `intercept_`, `privacy_` (the certificate), `solver_` and, where they follow from what was
    released, `coef_standard_error_` and `intercept_standard_error_`: of privacy noise and sampling together, without
    the bias of shrinking.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Lev et al. 2025 (mixing); Wang 2018 (AdaSSP); Sheffet 2017.

    Example
    -------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 10_000)[:, None]
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0, random_state=0)
    >>> model.fit(x, 0.5 * x[:, 0]).coef_.round(1)
    array([0.5])
    >>> model.privacy_.verdict
    'certified'
    """

    feature_bound: float
    target_bound: float
    solver: str = "auto"
    fit_intercept: bool = True
    sketch_rows: int | None = None

    def fit(self, X: Any, y: Any) -> LinearRegression:
        """Fit to features X (n, d) and a target y (n,) or the name of its column: whatever `read_table` reads."""
        claim = self._claim()
        bounds = Bounds.of(self.feature_bound, self.target_bound, intercept=self.fit_intercept)
        rows = None if self.sketch_rows is None else count("sketch_rows", self.sketch_rows)
        one_of("solver", self.solver, ("auto", *SOLVERS))
        data = Reading(read_table(self, X, y), bounds, self.progress)
        order = self.n_features_in_ + bool(self.fit_intercept)
        problem = Problem(data.records, order, bounds, *claim, rows)
        name = choose(problem) if self.solver == "auto" else self.solver
        with one_blas_thread(order < 500):
            found = self._solved(name, SOLVERS[name], problem, lambda: data.moments)
        self.solver_ = name
        self._publish(found, bounds.constant)
        return self

    def _publish(self, found: Solution, constant: float) -> None:
        """The fitted attributes, from weights of the columns [x, c]."""
        columns = self.n_features_in_
        self.coef_ = found.weights[:columns].copy()
        self.intercept_ = constant * float(found.weights[-1]) if constant else 0.0
        for name in ("coef_standard_error_", "intercept_standard_error_"):
            self.__dict__.pop(name, None)
        if found.covariance is not None:
            errors = np.sqrt(np.maximum(np.diag(found.covariance), 0.0))
            self.coef_standard_error_ = errors[:columns]
            self.intercept_standard_error_ = constant * float(errors[-1]) if constant else 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with few records noise is all there is
        return tags
