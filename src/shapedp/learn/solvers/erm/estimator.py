"""What the linear classifiers share: reading, the choice of a solver, fitted attributes, prediction."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateEstimator, checked_rows
from shapedp.learn.linear import UNITS, intercept_constant
from shapedp.learn.losses import MarginLoss
from shapedp.learn.moments import Bounds
from shapedp.learn.progress import bar
from shapedp.learn.solvers.erm import bolt_on, objective, output
from shapedp.learn.solvers.erm.labels import class_list, sign_columns
from shapedp.learn.solvers.erm.noise import NOISES
from shapedp.learn.solvers.erm.problem import Problem, Records, read_records
from shapedp.learn.solvers.linear.problem import Draws
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, one_of, positive
from shapedp.privacy import Certificate


class LinearClassifier(ClassifierMixin, PrivateEstimator, ABC):  # type: ignore[misc]
    """A linear classifier; a subclass has the parameters, `solvers` and `_loss`."""

    solvers: ClassVar[tuple[str, ...]]
    feature_bound: float
    classes: Any
    solver: str
    regularization: float | None
    noise: str
    fit_intercept: bool
    passes: int
    batch_size: int
    progress: bool

    @abstractmethod
    def _loss(self) -> MarginLoss:
        """The loss of a margin."""

    def _choose(self, problems: int) -> str:
        """The solver that "auto" stands for; from public quantities."""
        return "objective" if problems <= 30 else "output"

    def fit(self, X: Any, y: Any, **unsupported: Any) -> Any:
        """Fit to features X (n, d), dense or sparse, and labels y (n,)."""
        refuse(unsupported)
        self._claim()
        bounds = self._bounds()
        self._checked()
        classes = class_list(type(self).__name__, X, y, self.classes)
        weights, certificate, solver = self._weights(X, y, classes, bounds)
        self.privacy_, self.solver_, self.classes_ = certificate, solver, classes
        columns = self.n_features_in_
        self.coef_ = weights[:columns].T.copy()
        self.intercept_ = bounds.constant * weights[-1] if bounds.constant else np.zeros(weights.shape[1])
        return self

    def _checked(self) -> None:
        """Parameters, checked before any data are looked at."""
        one_of("solver", self.solver, ("auto", *self.solvers))
        one_of("noise", self.noise, NOISES)
        count("passes", self.passes)
        count("batch_size", self.batch_size)
        if self.regularization is not None:
            positive("regularization", self.regularization)
        self._loss()

    def _weights(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> tuple[Floats, Certificate, str]:
        """Released weights (order, problems), their certificate and the solver's name."""
        if isinstance(x, str | PathLike):
            chosen = self._choose(1 if classes.size == 2 else classes.size) if self.solver == "auto" else self.solver
            remedy = "from a file use solver='mixing' (two classes), or the command shapedp fit"
            remedy = remedy if "mixing" in self.solvers else "read the file first"
            raise ValueError(f"solver {chosen!r} needs arrays or a frame: {remedy}")
        rows = checked_rows(self, x)
        signs = sign_columns(y, classes, rows.shape[0])
        name = self._choose(signs.shape[1]) if self.solver == "auto" else self.solver
        problem = self._problem(name, signs, bounds, sparse.issparse(rows))
        solve = getattr(self, f"_by_{name.replace('-', '_')}")
        return *solve(problem, lambda: read_records(rows, signs, bounds)), name

    def _by_output(self, problem: Problem, read: Callable[[], Records]) -> tuple[Floats, Certificate]:
        mechanism = output.mechanism(problem, self.noise)
        certificate = self._required(mechanism.certificate)
        return output.solve(problem, read(), mechanism, self._draws()), certificate

    def _by_bolt_on(self, problem: Problem, read: Callable[[], Records]) -> tuple[Floats, Certificate]:
        mechanism = bolt_on.mechanism(problem, self.noise, self.passes, self.batch_size)
        certificate = self._required(mechanism.certificate)
        if problem.regularization < bolt_on.reachable(problem, self.passes, self.batch_size):
            warnings.warn(
                "fewer steps than the ratio of smoothness to regularization: the weights will be far from the minimum. "
                "Raise passes or regularization, or lower batch_size",
                ConvergenceWarning,
                stacklevel=4,
            )
        with bar(self.passes, " passes", self.progress) as advance:
            weights = bolt_on.solve(problem, read(), mechanism, self._draws(), self.passes, self.batch_size, advance)
        return weights, certificate

    def _by_objective(self, problem: Problem, read: Callable[[], Records]) -> tuple[Floats, Certificate]:
        mechanism = objective.mechanism(problem, self.noise)
        certificate = self._required(mechanism.certificate)
        return objective.solve(problem, read(), mechanism, self._draws()), certificate

    def _problem(self, name: str, signs: Floats, bounds: Bounds, is_sparse: bool) -> Problem:
        epsilon, delta, adjacency = self._claim()
        order = self.n_features_in_ + (bounds.constant > 0)
        fixed = self.regularization
        problem = Problem(
            self._loss(),
            len(signs),
            order,
            signs.shape[1],
            bounds.design,
            1.0 if fixed is None else float(fixed),
            epsilon,
            delta,
            adjacency,
            is_sparse,
        )
        if fixed is not None:
            return problem
        if name == "objective":
            return replace(problem, regularization=objective.default_regularization(problem))
        strength = output.default_regularization(problem)
        if name == "bolt-on":
            strength = max(strength, bolt_on.reachable(problem, self.passes, self.batch_size))
        return replace(problem, regularization=strength)

    def _bounds(self) -> Bounds:
        feature = positive("feature_bound", self.feature_bound)
        if not UNITS[0] < feature < UNITS[1]:
            raise ValueError(f"feature_bound must lie between {UNITS[0]:g} and {UNITS[1]:g}, got {feature!r}")
        return Bounds(feature, 1.0, intercept_constant(feature) if self.fit_intercept else 0.0)

    def _draws(self) -> Draws:
        return Draws(self._rng(), self.unsafe)

    def decision_function(self, X: Any) -> Floats:
        """X coef_ + intercept_: one number per record for two classes, one per class for more."""
        check_is_fitted(self)
        scores = np.asarray(checked_rows(self, X, reset=False) @ self.coef_.T + self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each record."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])


def refuse(unsupported: dict[str, Any]) -> None:
    """Say why a fit parameter is not taken."""
    if "sample_weight" in unsupported:
        raise TypeError(
            "sample_weight is not supported: a weight multiplies what one record can change, so the sensitivity would "
            "depend on the weights. Scale the features, or repeat the fit on parts of the data"
        )
    if unsupported:
        raise TypeError(f"fit takes no {', '.join(map(repr, unsupported))}")
