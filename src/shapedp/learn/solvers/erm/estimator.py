"""What the linear classifiers share: reading, the choice of a solver, fitted attributes, prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateEstimator, checked_rows
from shapedp.learn.linear import UNITS, intercept_constant
from shapedp.learn.losses import MarginLoss, lipschitz
from shapedp.learn.moments import Bounds
from shapedp.learn.solvers.erm import output
from shapedp.learn.solvers.erm.labels import class_list, sign_columns
from shapedp.learn.solvers.erm.noise import NOISES
from shapedp.learn.solvers.erm.problem import Problem, Records, read_records
from shapedp.learn.solvers.linear.problem import Draws
from shapedp.numerics.checks import one_of, positive
from shapedp.privacy import GaussianLoss

Floats = NDArray[np.float64]


class LinearClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """A linear classifier; a subclass has the parameters, `solvers` and `_loss`."""

    solvers: ClassVar[tuple[str, ...]]
    feature_bound: float
    classes: Any
    solver: str
    regularization: float | None
    noise: str
    fit_intercept: bool
    progress: bool

    def _loss(self) -> MarginLoss:
        raise NotImplementedError

    def _choose(self, problems: int) -> str:
        """The solver that "auto" stands for."""
        return "output"

    def fit(self, X: Any, y: Any, **unsupported: Any) -> Any:
        """Fit to features X (n, d), dense or sparse, and labels y (n,)."""
        refuse(unsupported)
        self._claim()
        bounds = self._bounds()
        one_of("solver", self.solver, ("auto", *self.solvers))
        one_of("noise", self.noise, NOISES)
        if self.regularization is not None:
            positive("regularization", self.regularization)
        self._checked()
        classes = class_list(type(self).__name__, X, y, self.classes)
        name = self._choose(1 if classes.size == 2 else classes.size) if self.solver == "auto" else self.solver
        weights = self._weights(name, X, y, classes, bounds)
        self.classes_ = classes
        self.solver_ = name
        columns = self.n_features_in_
        self.coef_ = weights[:columns].T.copy()
        self.intercept_ = bounds.constant * weights[-1] if bounds.constant else np.zeros(weights.shape[1])
        return self

    def _checked(self) -> None:
        """Further parameters, checked before any data are looked at."""

    def _weights(self, name: str, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> Floats:
        """Released weights (order, problems)."""
        raise NotImplementedError

    def _read(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> tuple[Problem, Callable[[], Records]]:
        """The problem, public, and a function that reads the records once all is checked."""
        rows = checked_rows(self, x)
        signs = sign_columns(y, classes, rows.shape[0])
        problem = self._problem(rows.shape[0], signs.shape[1], bounds, sparse.issparse(rows))
        return problem, lambda: read_records(rows, signs, bounds)

    def _problem(self, records: int, problems: int, bounds: Bounds, is_sparse: bool) -> Problem:
        epsilon, delta, adjacency = self._claim()
        loss = self._loss()
        strength = self.regularization
        if strength is None:
            strength = self._default(records, problems, bounds, lipschitz(loss, bounds.design))
        order = self.n_features_in_ + (bounds.constant > 0)
        return Problem(
            loss, records, order, problems, bounds.design, float(strength), epsilon, delta, adjacency, is_sparse
        )

    def _default(self, records: int, problems: int, bounds: Bounds, change: float) -> float:
        change *= 2 if self.adjacency == "replace" else 1
        mu = GaussianLoss.calibrate(self.epsilon, max(self.delta, 1e-12)).mu
        return output.default_regularization(records, problems, bounds.design, change, mu)

    def _bounds(self) -> Bounds:
        feature = positive("feature_bound", self.feature_bound)
        if not UNITS[0] < feature < UNITS[1]:
            raise ValueError(f"feature_bound must lie between {UNITS[0]:g} and {UNITS[1]:g}, got {feature!r}")
        return Bounds(feature, 1.0, intercept_constant(feature) if self.fit_intercept else 0.0)

    def _draws(self) -> Draws:
        return Draws(self._rng(), self.unsafe)

    @contextmanager
    def _bar(self) -> Iterator[Callable[[int, float], None] | None]:
        """A counter of iterations where one is asked for; how far they got is not shown."""
        try:
            from tqdm import tqdm
        except ImportError:
            tqdm = None
        if not self.progress or tqdm is None:
            yield None
            return
        with tqdm(unit=" iterations") as bar:
            yield lambda turn, gradient: bar.update()

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
