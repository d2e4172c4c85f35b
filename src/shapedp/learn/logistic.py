"""Logistic regression under differential privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.learn.base import read_table
from shapedp.learn.losses import Logistic, MarginLoss
from shapedp.learn.moments import Bounds, Reading
from shapedp.learn.progress import bar
from shapedp.learn.solvers.cd import Columns, Descent, OfMargin, Penalty
from shapedp.learn.solvers.erm import mixing, objective
from shapedp.learn.solvers.erm.estimator import LinearClassifier
from shapedp.learn.solvers.erm.problem import Problem, Records
from shapedp.learn.solvers.erm.surrogate import quadratic_surrogate
from shapedp.learn.solvers.linear.mixing import MIXING
from shapedp.learn.solvers.linear.problem import Problem as LeastSquares
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count
from shapedp.privacy import Certificate
from shapedp.sensitivity import Adjacency


class LogisticRegression(LinearClassifier):
    """Logistic regression, of two classes or one class against the rest, released under (epsilon, delta).

    `feature_bound` bounds |x|_2 and comes from knowledge about the data, never from the data: records beyond it are
    pulled in. `classes` names the labels; where it is None those that occur are treated as public, with a warning. A
    record with another label, a NaN or an infinity counts as a record of zeros. The intercept is the weight of a
    constant column, the power of two nearest half the feature bound, inside the accounting. `regularization` is Lambda
    in mean loss + (Lambda/2) |w|_2^2; None chooses it from the sizes and the claim ("cd": 0). "kifer" follows its paper
    and "mixing" has none: both refuse a given one.

    solver   "output": the exact minimum, then noise. "bolt-on": the last iterate of stochastic gradient descent
             (`passes` permutations, batches of `batch_size`), then noise. "objective": noise in the objective, then
             a little on its minimum; "kifer": as published in 2012. "cd": coordinate descent, `passes` passes.
             "mixing": least squares on a sketch of `sketch_rows` rows, for the quadratic closest to the loss up to
             margins of `surrogate_reach`. "auto": "objective", and "output" from 31 classes on.
    noise    of the first three: "gaussian", "radial" (the best spherical law, after a search), "auto" (radial
             for "output" and "bolt-on" with up to 100 weights); for these two also the name of a published recipe,
             worth what its certificate says: if refuted, `unsafe=True` releases it all the same.
    progress a bar where its length is public: passes, or records read. The iterations of "output", "objective" and
             "kifer" depend on the records and are not shown.

    Fitted: `classes_`, `coef_`, `intercept_`, `privacy_` (the certificate), `solver_`.

    Guarantee: see `PrivateEstimator`; errors and warnings depend on parameters, sizes and classes, never on a record.
    Reference: Chaudhuri, Monteleoni and Sarwate 2011 (output); Wu et al. 2017 (bolt-on); Kifer, Smith and Thakurta
    2012 and Iyengar et al. 2019 (objective); Mangold et al. 2022 (cd); Lev et al. 2025 (mixing).
    """

    solvers: ClassVar[tuple[str, ...]] = ("output", "bolt-on", "objective", "kifer", "cd", "mixing")

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
        passes: int = 10,
        batch_size: int = 50,
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
        self.passes = passes
        self.batch_size = batch_size
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.solver not in ("kifer", "cd")
        return tags

    def _loss(self) -> MarginLoss:
        return Logistic()

    def _checked(self) -> None:
        super()._checked()
        quadratic_surrogate(self.surrogate_reach)
        if self.regularization is not None and self.solver in ("kifer", "mixing"):
            raise ValueError(
                f"regularization is not for solver {self.solver!r}, which has its own or none: leave it out"
            )
        if self.sketch_rows is not None:
            count("sketch_rows", self.sketch_rows)

    def _weights(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> tuple[Floats, Certificate, str]:
        if self.solver == "mixing" and classes.size == 2:
            return *self._streamed(x, y, classes, bounds), "mixing"
        return super()._weights(x, y, classes, bounds)

    def _streamed(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> tuple[Floats, Certificate]:
        """Two classes from second moments: one pass over whatever `read_table` reads."""
        data = Reading(read_table(self, x, y, classes=classes.tolist()), bounds, self.progress)
        order = self.n_features_in_ + (bounds.constant > 0)
        problem = LeastSquares(data.records, order, bounds, *self._claim(), self.sketch_rows)
        mechanisms = mixing.sketching(problem)
        certificate = self._required(mechanisms[0].certificate)
        weights = MIXING.solve(data.moments, mechanisms, self._draws()).weights
        return quadratic_surrogate(self.surrogate_reach).scale * weights[:, None], certificate

    def _by_mixing(self, problem: Problem, read: Callable[[], Records]) -> tuple[Floats, Certificate]:
        """One class against the rest, all from one sketch."""
        bounds = self._bounds()
        mechanism = mixing.mechanism(problem, bounds, self.sketch_rows)
        certificate = self._required(mechanism.certificate)
        weights = mixing.solve(problem, read(), mechanism, bounds, self._draws())
        return quadratic_surrogate(self.surrogate_reach).scale * weights, certificate

    def _by_kifer(self, problem: Problem, read: Callable[[], Records]) -> tuple[Floats, Certificate]:
        fixed, mechanism = objective.kifer(problem)
        certificate = self._required(mechanism.certificate)
        return objective.solve(fixed, read(), mechanism, self._draws()), certificate

    def _by_cd(self, problem: Problem, read: Callable[[], Records]) -> tuple[Floats, Certificate]:
        """Coordinate descent on the records [x, c], every entry within its bound."""
        if problem.problems > 1:
            raise ValueError(objective.TWO_CLASSES.format("cd"))
        descent = Descent(problem.epsilon, problem.delta, problem.adjacency, passes=self.passes, unit=1.0)
        bounds, records, rng = self._bounds(), read(), self._rng()
        each = np.full(problem.order, bounds.feature)
        if bounds.constant:
            each[-1] = bounds.constant
        columns = Columns.of(records.x, records.signs[:, 0], each, intercept=False)
        response = OfMargin(problem.loss)

        def release(mechanism: Any, query: Floats) -> Floats:
            return np.asarray(mechanism.release(query, rng=rng, unsafe=self.unsafe).value)

        means, first = descent.means(columns, release)
        schedule = descent.schedule(means, columns.records, response.curvature_bound, intercept=False)
        certificate = self._certify([*first, *schedule.plan()])
        penalty = Penalty(l2=0.0 if self.regularization is None else float(self.regularization))
        with bar(descent.passes, " passes", self.progress) as advance:
            return schedule.run(columns, response, penalty, release, advance)[-1][:, None], certificate
