"""Linear classifiers under differential privacy: logistic regression and a support vector machine."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.boundary.arrays import distinct, equal
from shapedp.boundary.refusals import refusal
from shapedp.learn.base import PrivateModel, PublicLabelsWarning, checked_rows, read_table, refuse
from shapedp.learn.losses import HuberHinge, Logistic, MarginLoss
from shapedp.learn.moments import Bounds
from shapedp.learn.register import counted
from shapedp.learn.solvers.erm import SOLVERS
from shapedp.learn.solvers.erm.descent import DESCENT
from shapedp.learn.solvers.erm.mixing import quadratic_surrogate
from shapedp.learn.solvers.erm.output import NOISES
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

    @counted
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
            remedy = "from a file use solver='descent' or 'mixing' (two classes), or the command shapedp fit"
            remedy = remedy if "mixing" in self.solvers else "read the file first"
            raise ValueError(f"solver {name!r} needs arrays or a frame: {remedy}")
        rows = checked_rows(self, x)
        signs = sign_columns(y, classes, rows.shape[0])
        name = self._chosen(signs.shape[1])
        problem = self._problem(signs, bounds, is_sparse=sparse.issparse(rows))
        if self.regularization is None:
            problem = SOLVERS[name].completed(problem)
        found = self._solved(SOLVERS, name, problem, lambda: Risk(problem, read_records(rows, signs, bounds)))
        return found.weights, name

    def _problem(self, signs: Floats, bounds: Bounds, *, is_sparse: bool) -> Problem:
        sizes = (len(signs), self.n_features_in_ + (bounds.constant > 0), signs.shape[1])
        strength = 1.0 if self.regularization is None else float(self.regularization)
        settings: tuple[Any, ...] = (is_sparse, bounds, self.noise, self.passes, self.batch_size)
        return Problem(self._loss(), *sizes, bounds.design, strength, *self._claim(), *settings)

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
        text = "classes was not given: which labels occur in y is treated as public. Pass classes=[...]"
        warnings.warn(text, PublicLabelsWarning, stacklevel=3)
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
        `surrogate_reach`. "descent": released second moments, then ten noisy gradient steps in their metric; it reads
        sums over records only, eleven times. "auto": "objective", and "output" from 31 classes on.
    regularization: Lambda in mean loss + (Lambda/2) |w|_2^2; None chooses it from the sizes and the claim ("cd": 0).
        "kifer" follows its paper, "descent" the size of its noise, and "mixing" has none: they refuse a given one.
    noise: of "output", "bolt-on" and "objective": "gaussian", "radial" (the best spherical law, after a search) or
        "auto" (radial for "output" and "bolt-on" with up to 100 weights). For "output" and "bolt-on" also the name of
        a published recipe, for "objective" also "product-noise" (Algorithm 3 of its paper): they are worth what their
        certificate says, and `unsafe=True` releases all the same.
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

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 2_000)[:, None]
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, classes=[0, 1], random_state=0)
    >>> model.fit(x, x[:, 0] > 0).predict([[-0.9], [0.9]])
    array([0, 1])
    """

    solvers: ClassVar[tuple[str, ...]] = ("output", "bolt-on", "objective", "kifer", "cd", "mixing", "descent")
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
        tags.classifier_tags.multi_class = self.solver not in ("kifer", "cd", "descent")
        return tags

    def _loss(self) -> MarginLoss:
        return Logistic()

    def _checked(self) -> None:
        super()._checked()
        quadratic_surrogate(self.surrogate_reach)
        if self.regularization is not None and self.solver in ("kifer", "mixing", "descent"):
            raise ValueError(f"regularization is not for solver {self.solver!r}, which has its own or none: omit it")
        if self.sketch_rows is not None:
            count("sketch_rows", self.sketch_rows)

    def _weights(self, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> tuple[Floats, str]:
        if self.solver == "mixing" and classes.size == 2:
            found = self._least_squares("mixing", x, y, bounds, self.sketch_rows, classes.tolist())
            weights, name = found.weights[:, None], "mixing"
        elif self.solver == "descent":
            if classes.size > 2:
                raise ValueError(refusal("learn", "binary-only", solver="descent"))
            table = read_table(self, x, y, classes=classes.tolist())
            found = self._solution("descent", table, bounds, None, {"descent": DESCENT})
            weights, name = found.weights[:, None], "descent"
        else:
            weights, name = super()._weights(x, y, classes, bounds)
        return (quadratic_surrogate(self.surrogate_reach).scale * weights if name == "mixing" else weights), name

    def _problem(self, signs: Floats, bounds: Bounds, *, is_sparse: bool) -> Problem:
        return replace(super()._problem(signs, bounds, is_sparse=is_sparse), sketch_rows=self.sketch_rows)


@dataclass(kw_only=True, eq=False, repr=False)
class HuberSVC(LinearClassifier):
    """A linear support vector machine with the Huber hinge loss, released under (epsilon, delta).

    Parameters
    ----------
    width: the width of the bend of the Huber hinge.
    Others, and fitted attributes, as those of `LogisticRegression`, with fewer solvers and without probabilities.

    Guarantee: see `PrivateEstimator`.
    Reference: Chaudhuri, Monteleoni and Sarwate 2011, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> claim = {"epsilon": 1.0, "delta": 1e-6}
    >>> x = np.linspace(-1, 1, 2_000)[:, None]
    >>> HuberSVC(**claim, feature_bound=1.0, classes=[0, 1], random_state=0).fit(x, x[:, 0] > 0).privacy_.verdict
    'certified'
    """

    solvers: ClassVar[tuple[str, ...]] = ("output", "bolt-on", "objective")
    width: float = 0.1

    def _loss(self) -> MarginLoss:
        return HuberHinge(self.width)
