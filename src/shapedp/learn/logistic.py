"""Logistic regression under differential privacy."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.learn.losses import Logistic, MarginLoss
from shapedp.learn.moments import Bounds, Reading
from shapedp.learn.solvers.erm import mixing, output
from shapedp.learn.solvers.erm.estimator import LinearClassifier
from shapedp.learn.solvers.erm.surrogate import quadratic_surrogate
from shapedp.learn.solvers.linear.mixing import MIXING
from shapedp.learn.solvers.linear.problem import Problem as LeastSquares
from shapedp.learn.tables import read_table
from shapedp.numerics.checks import count, positive
from shapedp.sensitivity import Adjacency

Floats = NDArray[np.float64]


class LogisticRegression(LinearClassifier):
    """Logistic regression, of two classes or one class against the rest, released under (epsilon, delta).

    `feature_bound` bounds |x|_2 and comes from knowledge about the data, never from the data: records beyond it are
    pulled in. `classes` names the labels; where it is None those that occur are treated as public, with a warning. A
    record with another label, a NaN or an infinity counts as a record of zeros. `solver`:
    "output" (the exact minimum of mean loss + (regularization/2) |w|^2, and noise), "mixing" (least squares on a
    sketch, for a quadratic close to the loss up to margins of `surrogate_reach`), "auto". `noise` of "output":
    "gaussian", "radial" (the best spherical law), "auto", or the name of a published recipe, which `unsafe=True` may
    release though it is refuted. The intercept is the weight of a constant column, inside the accounting.

    Fitted: `classes_`, `coef_`, `intercept_`, `privacy_` (the certificate), `solver_`.

    Guarantee: see `PrivateEstimator`; errors depend on parameters, sizes and classes, never on a record.
    Reference: Chaudhuri, Monteleoni and Sarwate 2011 (output); Lev et al. 2025 (mixing).
    """

    solvers: ClassVar[tuple[str, ...]] = ("output", "mixing")

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        feature_bound: float,
        classes: Any = None,
        solver: str = "auto",
        regularization: float | None = None,
        noise: str = "auto",
        fit_intercept: bool = True,
        adjacency: Adjacency = "zero-out",
        sketch_rows: int | None = None,
        surrogate_reach: float = 6.0,
        random_state: Any = None,
        unsafe: bool = False,
        progress: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.classes = classes
        self.solver = solver
        self.regularization = regularization
        self.noise = noise
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.sketch_rows = sketch_rows
        self.surrogate_reach = surrogate_reach
        self.random_state = random_state
        self.unsafe = unsafe
        self.progress = progress

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, in the order of `classes_`; one against the rest, made to add up to 1."""
        odds = special.expit(self.decision_function(X))
        if odds.ndim == 1:
            return np.column_stack([1 - odds, odds])
        total = odds.sum(axis=1, keepdims=True)
        share = np.full_like(odds, 1 / odds.shape[1])
        return np.asarray(np.divide(odds, total, out=share, where=total > 0))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _loss(self) -> MarginLoss:
        return Logistic()

    def _checked(self) -> None:
        positive("surrogate_reach", self.surrogate_reach)
        if self.sketch_rows is not None:
            count("sketch_rows", self.sketch_rows)

    def _weights(self, name: str, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> Floats:
        if name == "mixing":
            scale = quadratic_surrogate(self.surrogate_reach).scale
            return scale * (
                self._mixed(x, y, classes, bounds) if classes.size > 2 else self._streamed(x, y, classes, bounds)
            )
        problem, records = self._read(x, y, classes, bounds)
        mechanism = output.mechanism(problem, self.noise)
        self.privacy_ = self._certify([mechanism])
        with self._bar() as progress:
            return output.solve(problem, records(), mechanism, self._draws(), progress)

    def _streamed(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> Floats:
        """Two classes from second moments: one pass over whatever `read_table` reads."""
        data = Reading(read_table(self, x, y, classes=classes.tolist()), bounds, self.progress)
        order = self.n_features_in_ + (bounds.constant > 0)
        epsilon, delta, adjacency = self._claim()
        problem = LeastSquares(data.records, order, bounds, epsilon, delta, adjacency, self.sketch_rows)
        mechanisms = MIXING.mechanisms(problem)
        self.privacy_ = self._certify(mechanisms)
        return MIXING.solve(data.moments, mechanisms, self._draws()).weights[:, None]

    def _mixed(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> Floats:
        """One class against the rest, all from one sketch."""
        problem, records = self._read(x, y, classes, bounds)
        mechanism = mixing.mechanism(problem, bounds, self.sketch_rows)
        self.privacy_ = self._certify([mechanism])
        return mixing.solve(problem, records(), mechanism, bounds, self._draws())
