"""What every estimator shares: the claim, checked rows, randomness, and one certificate for all it releases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from shapedp.accounting import Plan
from shapedp.accounting.plan import Step
from shapedp.boundary.arrays import numbers
from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import boolean
from shapedp.learn.moments import Bounds, Reading, one_blas_thread
from shapedp.learn.residuals import rereadable
from shapedp.learn.solvers import linear
from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.mechanisms import certify
from shapedp.mechanisms.watch import is_watched
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import one_of, positive, probability
from shapedp.privacy import BLANK, ROWS, Certificate
from shapedp.sensitivity import Adjacency
from shapedp.tables.blocks import NO_TARGET, InMemory, Table, open_table, target_of

NEIGHBOURS: tuple[Adjacency, ...] = ("zero-out", "replace")
SCOPE = (
    f"{ROWS} {BLANK} This fit alone is covered: steps fitted to the same data before or around it (scalers, "
    "feature selection, searches, other fits) are not. A record with a missing cell, or one that is no number, counts "
    "as none; a column of text makes that of every record."
)


class PublicLabelsWarning(UserWarning):
    """Something was read from the data and is treated as public, such as which labels occur.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PublicLabelsWarning)  # refuse to treat labels as public
    """


@cache
def _switches(kind: Any) -> tuple[str, ...]:
    """The parameters of an estimator that are true or false."""
    parameters = inspect.signature(kind).parameters.items()
    return tuple(name for name, parameter in parameters if parameter.annotation == "bool")


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose `fit` releases under (epsilon, delta) and leaves the certificate in `privacy_`.

    Guarantee: the number of records and of columns is public; anything else about the data reaches the fitted
    attributes through certified releases only. A record with a NaN or an infinity counts as none: an error would
    depend on one person. Under "zero-out" a neighbour has one record that counts as none, under "replace" another one.
    `random_state` is for simulations; without it randomness is secure.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = "zero-out"
    random_state: Any = None
    unsafe: bool = False

    def _claim(self) -> tuple[float, float, Adjacency]:
        """The claim and every switch of the estimator, checked before any data are looked at."""
        for name in _switches(type(self)):  # type: ignore[arg-type]
            boolean(name, getattr(self, name))
        adjacency = one_of("adjacency", self.adjacency, NEIGHBOURS)
        return positive("epsilon", self.epsilon), probability("delta", self.delta), adjacency

    def _rng(self) -> np.random.Generator | None:
        """None for secure randomness; a generator where `random_state` asks for a simulation."""
        if self.random_state is None or isinstance(self.random_state, np.random.Generator):
            return self.random_state
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1, size=4))

    def _required(self, certificate: Certificate) -> Certificate:
        """A certificate for this fit's randomness; required, unless `unsafe`."""
        certificate = replace(certificate.with_randomness(self.random_state is None and not is_watched()), scope=SCOPE)
        return certificate if self.unsafe else certificate.require()

    @property
    def partial_fit(self) -> Any:
        """Not offered, and `hasattr` says so: the reason and the remedy are in the error."""
        raise AttributeError(refusal("learn", "partial-fit", kind=type(self).__name__))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True  # counts as missing
        tags.non_deterministic = self.random_state is None
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateModel(PrivateEstimator):
    """A private estimator that is fitted by one solver."""

    progress: bool = False

    def _solved(self, solvers: Mapping[str, Any], name: str, problem: Any, data: Callable[[], Any]) -> Solution:
        """Certify, then read the data, release and solve; leaves the certificate in `privacy_`."""
        solver: Solver[Any, Any] = solvers[name]
        if self.adjacency not in solver.adjacencies:
            known = ", ".join(solver.adjacencies)
            raise ValueError(f"solver {name!r} is for adjacency {known}, got {self.adjacency!r}")
        mechanisms = solver.mechanisms(problem)
        certificate = self._certify(mechanisms) if mechanisms else None
        found = solver.solve(data(), mechanisms, Draws(self._rng(), self.unsafe, self.progress))
        self.privacy_ = certificate or self._certify(found.released)
        return found

    def _least_squares(
        self, name: str, x: Any, y: Any, bounds: Bounds, rows: int | None, classes: Sequence[Any] | None = None
    ) -> Solution:
        """The solution of a least-squares solver on whatever `read_table` reads; leaves its name in `solver_`."""
        return self._solution(name, read_table(self, x, y, classes=classes), bounds, rows)

    def _solution(
        self, name: str, table: Table, bounds: Bounds, rows: int | None, solvers: Mapping[str, Any] = linear.SOLVERS
    ) -> Solution:
        """The same on a table that was read, by one of the solvers of sums."""
        data = Reading(table, bounds, self.progress)
        if name == "auto":
            name = linear.AUTO if rereadable(data.table) else linear.AUTO_ONCE
        self.solver_ = name
        if solvers[name].passes > 1 and not rereadable(data.table):
            raise ValueError(refusal("learn", "one-pass", solver=name))
        order = data.table.columns + (bounds.constant > 0)
        problem = linear.Problem(data.records, order, bounds, *self._claim(), sketch_rows=rows)
        with one_blas_thread(order < 500):
            return self._solved(solvers, name, problem, lambda: data.moments)

    def _certify(self, releases: Sequence[Any]) -> Certificate:
        """The certificate of releasing once through each mechanism (a `Step`: as often as it says)."""
        subject = releases[0]
        if len(releases) > 1 or isinstance(subject, Step):
            subject = Plan(tuple(one if isinstance(one, Step) else Step(one) for one in releases))
        return self._required(certify(subject, epsilon=self.epsilon, delta=self.delta))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """A linear model of a numeric target."""

    def predict(self, X: Any) -> Floats:
        """X coef_ + intercept_; one column for each target where there are several."""
        check_is_fitted(self, "coef_")
        return np.asarray(checked_rows(self, X, reset=False) @ self.coef_.T + self.intercept_)


def refuse(unsupported: dict[str, Any]) -> None:
    """Say why a parameter of `fit` is not taken."""
    if "sample_weight" in unsupported:
        raise TypeError(refusal("learn", "sample-weight"))
    if unsupported:
        raise TypeError(f"fit takes no {', '.join(map(repr, unsupported))}")


def checked_rows(estimator: Any, x: Any, *, reset: bool = True) -> Any:
    """Rows of numbers, NaN and infinity among them: dense float64 or float32, or CSR. See `numbers`."""
    if reset and type(x) is np.ndarray and x.dtype == np.float64 and x.ndim == 2 and x.size:
        estimator.n_features_in_ = x.shape[1]  # nothing is left to check
        estimator.__dict__.pop("feature_names_in_", None)
        return x
    kinds = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "ensure_all_finite": False}
    rows = check_array(numbers(x), input_name="X", estimator=estimator, **kinds)
    validate_data(estimator, x if hasattr(x, "columns") else rows, reset=reset, skip_check_array=True)
    return rows


def read_table(estimator: Any, x: Any, y: Any = NO_TARGET, *, classes: Sequence[Any] | None = None) -> Table:
    """What `fit(x, y)` was given, as a table; sets `n_features_in_` and `feature_names_in_` of the estimator.

    x: an array, a scipy sparse matrix, or whatever `open_table` reads. y: an array or, where x has named columns, the
    name of one; left out where there is none (targets are then 0). `classes` turns labels into -1 (the first) and +1.

    Guarantee: errors depend on types, names and sizes only. What is no number (a null, an unreadable cell, a label
    that is not one of the classes) is NaN in the blocks, and `moments` turns such a record into zeros.
    """
    table = open_table(x, y, classes)
    if table is None:
        rows = checked_rows(estimator, x)
        return InMemory(rows, target_of(y, rows.shape[0], classes))
    estimator.n_features_in_ = table.columns
    estimator.__dict__.pop("feature_names_in_", None)
    if table.names is not None and all(isinstance(name, str) for name in table.names):
        estimator.feature_names_in_ = np.array(table.names, dtype=object)
    return table
