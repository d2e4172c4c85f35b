"""Steps before a model that learn nothing from records: ranges and categories come from public knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from shapedp.boundary.arrays import cells, equal
from shapedp.boundary.cells import is_label, same
from shapedp.learn.base import checked_rows
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import real, vector

WIDEST, NARROWEST = 1e150, 1e-150  # of a range


def dense_rows(estimator: Any, x: Any, *, reset: bool = True) -> Floats:
    """Rows of numbers as a dense float64 array; what is missing, infinite or no number is NaN."""
    if sparse.issparse(x):
        raise TypeError(f"{type(estimator).__name__} takes no sparse matrix: it would not stay sparse")
    rows = np.asarray(checked_rows(estimator, x, reset=reset), dtype=np.float64)
    return np.where(np.isfinite(rows), rows, np.nan)


def ranges(low: ArrayLike, high: ArrayLike, columns: int) -> tuple[Floats, Floats]:
    """Both ends of each column's range, checked."""
    ends = []
    for name, given in (("low", low), ("high", high)):
        found = np.full(columns, real(name, given)) if np.ndim(given) == 0 else vector(name, given)
        if found.size != columns:
            raise ValueError(f"{name} must be a number or hold one per column ({columns}), got {found.size}")
        if not np.abs(found).max() <= WIDEST:
            raise ValueError(f"{name} must lie within {WIDEST:g}: use other units")
        ends.append(found)
    if not (ends[0] < ends[1]).all():
        raise ValueError("low must be less than high in every column")
    if not (ends[1] - ends[0]).min() >= NARROWEST:  # parts of it would vanish, and be divided by
        raise ValueError(f"low and high must be {NARROWEST:g} apart or more: use other units")
    return ends[0], ends[1]


def within(rows: Floats, ends: tuple[Floats, Floats]) -> Floats:
    """Rows clipped to the ranges, as parts of them: 0 at the low end and 1 at the high end; NaN stays."""
    low, high = ends
    return np.asarray(np.clip((np.clip(rows, low, high) - low) / (high - low), 0.0, 1.0))


@dataclass(eq=False, repr=False)
class PublicScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns clipped to ranges known beforehand and brought to [0, 1]. It learns nothing and costs nothing.

    Parameters
    ----------
    low, high: the ends of the range of each column (a number, or one per column), from knowledge about the units of the
        data, never from the data.
    missing: what stands for a missing cell, a number from 0 to 1; None leaves it missing, and an estimator of
        `shapedp.learn` counts such a record as zeros.

    Fitted: `n_features_in_` and, of a frame, `feature_names_in_`.

    Guarantee: what comes out for a row depends on that row alone. A cell that is infinite or no number is missing.

    Examples
    --------
    >>> PublicScaler(low=[0, 0], high=[100, 2]).fit_transform([[25.0, 1.0], [130.0, float("nan")]])
    array([[0.25, 0.5 ],
           [1.  ,  nan]])
    """

    low: ArrayLike
    high: ArrayLike
    missing: float | None = None

    def fit(self, X: Any, y: Any = None) -> PublicScaler:
        """Check the parameters against the number of columns."""
        if self.missing is not None and not 0 <= real("missing", self.missing) <= 1:
            raise ValueError(f"missing must lie in [0, 1], the range of what comes out, got {self.missing!r}")
        rows = dense_rows(self, X)
        ranges(self.low, self.high, rows.shape[1])
        return self

    def transform(self, X: Any) -> Floats:
        """Each cell as a part of its range."""
        check_is_fitted(self, "n_features_in_")
        scaled = within(dense_rows(self, X, reset=False), ranges(self.low, self.high, self.n_features_in_))
        return scaled if self.missing is None else np.where(np.isnan(scaled), float(self.missing), scaled)

    def inverse_transform(self, X: Any) -> Floats:
        """Values from parts of their ranges."""
        check_is_fitted(self, "n_features_in_")
        low, high = ranges(self.low, self.high, self.n_features_in_)
        return np.asarray(low + np.asarray(X, dtype=np.float64) * (high - low))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True  # counts as missing
        return tags


@dataclass(eq=False, repr=False)
class PublicOneHot(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A column of 0 and 1 for each category known beforehand. It learns nothing and costs nothing.

    Parameters
    ----------
    categories: a list of categories for each column, or a dict of such lists by the names of a frame's columns.

    Fitted: `n_features_in_` and, of a frame, `feature_names_in_`.

    Guarantee: what comes out for a row depends on that row alone. A cell that is missing or none of the categories
    gives zeros: an error would depend on one record.

    Examples
    --------
    >>> PublicOneHot([["F", "M"]]).fit_transform([["M"], ["F"], [None]])
    array([[0., 1.],
           [1., 0.],
           [0., 0.]])
    """

    categories: Sequence[Sequence[Any]] | Mapping[str, Sequence[Any]]

    def fit(self, X: Any, y: Any = None) -> PublicOneHot:
        """Check the categories against the number and names of the columns."""
        found = cells(X)
        if not found or not len(found[0]):
            raise ValueError(f"X must hold at least one record and one column, got {len(found)} columns")
        self._named(X, len(found), reset=True)
        self._listed()
        return self

    def transform(self, X: Any) -> Floats:
        """Zeros and ones, category by category, column by column."""
        check_is_fitted(self, "n_features_in_")
        found = cells(X)
        self._named(X, len(found), reset=False)
        hits = [equal(column, one) for column, listed in zip(found, self._listed(), strict=True) for one in listed]
        return np.stack(hits, axis=1).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The column's name, an underscore and the category."""
        check_is_fitted(self, "n_features_in_")
        usual = [f"x{i}" for i in range(self.n_features_in_)]
        names = getattr(self, "feature_names_in_", usual) if input_features is None else input_features
        if len(names) != self.n_features_in_:
            raise ValueError(f"input_features must name {self.n_features_in_} columns, got {len(names)}")
        pairs = zip(names, self._listed(), strict=True)
        return np.array([f"{name}_{one}" for name, listed in pairs for one in listed], dtype=object)

    def _named(self, x: Any, columns: int, *, reset: bool) -> None:
        """Compare, or with `reset` keep, the number and the names of the columns."""
        given = x if hasattr(x, "columns") else np.empty((1, columns))
        validate_data(self, given, reset=reset, skip_check_array=True)

    def _listed(self) -> list[list[Any]]:
        """The categories of each column, checked."""
        names: list[Any] = list(range(self.n_features_in_))
        given: list[Any] = []
        if isinstance(self.categories, Mapping):
            names = list(getattr(self, "feature_names_in_", ()))
            if set(names) != set(self.categories):
                raise ValueError("categories are given by name: X must be a frame with exactly these columns")
            given = [self.categories[name] for name in names]
        elif not isinstance(self.categories, str):
            given = list(self.categories)
        if len(given) != self.n_features_in_ or any(isinstance(one, str) for one in given):
            raise ValueError(f"categories must hold a list for each column ({self.n_features_in_})")
        for name, listed in zip(names, given, strict=True):
            whole = list(listed)
            if not whole or not all(is_label(one) for one in whole):
                raise ValueError(f"the categories of column {name!r} must be one or more labels, none of them missing")
            if any(same(one, other) for i, one in enumerate(whole) for other in whole[:i]):
                raise ValueError(f"the categories of column {name!r} must be distinct")
        return [list(listed) for listed in given]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
