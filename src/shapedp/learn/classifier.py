"""What the linear classifiers share: reading, labels, the choice of a solver, fitted attributes, prediction."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.boundary.arrays import distinct, equal
from shapedp.learn.base import PrivateModel, PublicLabelsWarning, checked_rows, refuse
from shapedp.learn.losses import MarginLoss
from shapedp.learn.moments import Bounds
from shapedp.learn.solvers.erm import SOLVERS
from shapedp.learn.solvers.erm.noise import NOISES
from shapedp.learn.solvers.erm.problem import Problem, Risk, read_records
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, one_of, positive
from shapedp.tables.blocks import entries, labels_of, same_length


@dataclass(kw_only=True, eq=False, repr=False)
class LinearClassifier(ClassifierMixin, PrivateModel, ABC):  # type: ignore[misc]
    """A linear classifier; a subclass adds its own parameters, `solvers` and `_loss`."""

    solvers: ClassVar[tuple[str, ...]]
    feature_bound: float
    classes: Any = None
    solver: str = "auto"
    regularization: float | None = None
    noise: str = "auto"
    fit_intercept: bool = True
    passes: int = 10
    batch_size: int = 50

    @abstractmethod
    def _loss(self) -> MarginLoss:
        """The loss of a margin."""

    def fit(self, X: Any, y: Any, **unsupported: Any) -> Any:
        """Fit to features X (n, d), dense or sparse, and labels y (n,)."""
        refuse(unsupported)
        self._claim()
        bounds = Bounds.of(self.feature_bound, 1.0, intercept=self.fit_intercept)
        self._checked()
        classes = class_list(type(self).__name__, X, y, self.classes)
        weights, solver = self._weights(X, y, classes, bounds)
        self.solver_, self.classes_ = solver, classes
        self.coef_ = weights[: self.n_features_in_].T.copy()
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

    def _chosen(self, problems: int) -> str:
        """The name of the solver; what "auto" stands for follows from public quantities."""
        return self.solver if self.solver != "auto" else "objective" if problems <= 30 else "output"

    def _weights(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> tuple[Floats, str]:
        """Released weights (order, problems) and the solver's name."""
        if isinstance(x, str | PathLike):
            name = self._chosen(1 if classes.size == 2 else classes.size)
            remedy = "from a file use solver='mixing' (two classes), or the command shapedp fit"
            remedy = remedy if "mixing" in self.solvers else "read the file first"
            raise ValueError(f"solver {name!r} needs arrays or a frame: {remedy}")
        rows = checked_rows(self, x)
        signs = sign_columns(y, classes, rows.shape[0])
        name = self._chosen(signs.shape[1])
        solver, problem = SOLVERS[name], self._problem(signs, bounds, is_sparse=sparse.issparse(rows))
        if self.regularization is None:
            problem = solver.completed(problem)
        found = self._solved(name, solver, problem, lambda: Risk(problem, read_records(rows, signs, bounds)))
        return found.weights, name

    def _problem(self, signs: Floats, bounds: Bounds, *, is_sparse: bool) -> Problem:
        return Problem(
            self._loss(),
            len(signs),
            self.n_features_in_ + (bounds.constant > 0),
            signs.shape[1],
            bounds.design,
            1.0 if self.regularization is None else float(self.regularization),
            *self._claim(),
            is_sparse,
            bounds,
            self.noise,
            self.passes,
            self.batch_size,
        )

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


def class_list(name: str, x: Any, y: Any, given: Any) -> NDArray[Any]:
    """The classes, sorted: as given, or those that occur in y, which are then treated as public."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    if given is None:
        found = labels_of(x, y)
        if found.dtype.kind == "f" and (found != np.trunc(found)).any():
            raise ValueError("Unknown label type: continuous. A classifier needs labels; name them by classes=[...]")
        warnings.warn(
            "classes was not given: which labels occur in y is treated as public. Pass classes=[...]",
            PublicLabelsWarning,
            stacklevel=3,
        )
    else:
        named = entries(given)
        found = distinct(named)
        if found.size != named.size:
            raise ValueError(f"classes must be distinct and none of them missing, got {given!r}")
    if found.size < 2:
        raise ValueError(f"{name} needs two classes or more, got one class: {found.tolist()!r}")
    return found


def sign_columns(y: Any, classes: NDArray[Any], records: int) -> Floats:
    """+1 and -1: one column for two classes (+1 for the second), one per class for more; zeros for other labels."""
    labels = entries(y)
    same_length(records, len(labels))
    hits = np.stack([equal(labels, label) for label in classes.tolist()], axis=1)
    known = hits.any(axis=1, keepdims=True)
    return np.where(known, np.where(hits[:, 1:] if classes.size == 2 else hits, 1.0, -1.0), 0.0)
