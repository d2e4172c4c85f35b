"""Logistic regression under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.learn.base import read_table
from shapedp.learn.classifier import LinearClassifier
from shapedp.learn.losses import Logistic, MarginLoss
from shapedp.learn.moments import Bounds, Reading
from shapedp.learn.solvers.erm.problem import Problem
from shapedp.learn.solvers.erm.surrogate import quadratic_surrogate
from shapedp.learn.solvers.linear import Problem as LeastSquares
from shapedp.learn.solvers.linear.mixing import MIXING
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(LinearClassifier):
    """Logistic regression, of two classes or one class against the rest, released under (epsilon, delta).

    The intercept is the weight of a constant column, the power of two nearest half the feature bound; it is inside
    the accounting. A record with an unknown label, a NaN or an infinity counts as a record of zeros.

    Parameters
    ----------
    epsilon, delta: the claim.
    feature_bound: a bound on |x|_2, from knowledge about the data, never from the data. Records beyond it are scaled
        down to it.
    classes: the labels. Where it is None, those that occur are treated as public, with a warning.
    solver: "output": the exact minimum, then noise. "bolt-on": the last iterate of stochastic gradient descent
        (`passes` permutations, batches of `batch_size`), then noise. "objective": noise in the objective, then a
        little on its minimum; "kifer": as published in 2012. "cd": coordinate descent, `passes` passes. "mixing":
        least squares on a sketch of `sketch_rows` rows, for the quadratic closest to the loss up to margins of
        `surrogate_reach`. "auto": "objective", and "output" from 31 classes on.
    regularization: Lambda in mean loss + (Lambda/2) |w|_2^2; None chooses it from the sizes and the claim ("cd": 0).
        "kifer" follows its paper and "mixing" has none: both refuse a given one.
    noise: of "output", "bolt-on" and "objective": "gaussian", "radial" (the best spherical law, after a search) or
        "auto" (radial for "output" and "bolt-on" with up to 100 weights). For "output" and "bolt-on" also the name of
        a published recipe, worth what its certificate says: if it is refuted, `unsafe=True` releases all the same.
    fit_intercept: whether there is a constant term.
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.
    progress: show a bar where its length is public: passes, or records read. The number of iterations of "output",
        "objective" and "kifer" depends on the records and is not shown.

    Fitted: `classes_`, `coef_`, `intercept_`, `privacy_` (the certificate), `solver_`.

    Guarantee: see `PrivateEstimator`; errors and warnings depend on parameters, sizes and classes, never on a record.
    Reference: Chaudhuri, Monteleoni and Sarwate 2011 (output); Wu et al. 2017 (bolt-on); Kifer, Smith and Thakurta
    2012 and Iyengar et al. 2019 (objective); Mangold et al. 2022 (cd); Lev et al. 2025 (mixing).

    Example
    -------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 2_000)[:, None]
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, classes=[0, 1], random_state=0)
    >>> model.fit(x, x[:, 0] > 0).predict([[-0.9], [0.9]])
    array([0, 1])
    """

    solvers: ClassVar[tuple[str, ...]] = ("output", "bolt-on", "objective", "kifer", "cd", "mixing")
    sketch_rows: int | None = None
    surrogate_reach: float = 6.0

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

    def _weights(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> tuple[Floats, str]:
        if self.solver == "mixing" and classes.size == 2:
            weights, name = self._streamed(x, y, classes, bounds), "mixing"
        else:
            weights, name = super()._weights(x, y, classes, bounds)
        return (quadratic_surrogate(self.surrogate_reach).scale * weights if name == "mixing" else weights), name

    def _streamed(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> Floats:
        """Two classes from second moments: one pass over whatever `read_table` reads."""
        data = Reading(read_table(self, x, y, classes=classes.tolist()), bounds, self.progress)
        order = self.n_features_in_ + (bounds.constant > 0)
        problem = LeastSquares(data.records, order, bounds, *self._claim(), self.sketch_rows)
        return self._solved("mixing", MIXING, problem, lambda: data.moments).weights[:, None]

    def _problem(self, signs: Floats, bounds: Bounds, *, is_sparse: bool) -> Problem:
        return replace(super()._problem(signs, bounds, is_sparse=is_sparse), sketch_rows=self.sketch_rows)
