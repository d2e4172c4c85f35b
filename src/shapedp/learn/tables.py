"""Rows in blocks, from whatever holds them: the one way estimators read their data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shapedp.boundary.arrays import distinct, equal
from shapedp.learn.base import checked_rows, checked_target, entries
from shapedp.numerics.gram import BLOCK, GROUP

Floats = NDArray[np.float64]
CHUNK = GROUP * BLOCK  # rows of a block
NO_TARGET: Any = object()


class Table(Protocol):
    """Records with a target, read in blocks."""

    @property
    def records(self) -> int | None:
        """The number of records, public; None where only a pass tells (a stream)."""

    @property
    def columns(self) -> int:
        """The number of features, public."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, where they have any."""

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        """Features (dense or CSR) and target of CHUNK records at a time; fewer in the last block only."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """A dense array or CSR matrix, and a vector of as many entries."""

    x: Any
    y: Floats
    names: tuple[str, ...] | None = None

    @property
    def records(self) -> int:
        return int(self.x.shape[0])

    @property
    def columns(self) -> int:
        return int(self.x.shape[1])

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        for start in range(0, self.records, CHUNK):
            yield self.x[start : start + CHUNK], self.y[start : start + CHUNK]


def read_table(estimator: Any, x: Any, y: Any = NO_TARGET, *, classes: Sequence[Any] | None = None) -> Table:
    """What `fit(x, y)` was given as a `Table`; sets `n_features_in_` and `feature_names_in_` of the estimator.

    x: an array, a scipy sparse matrix of any format, a pandas or polars frame, a pyarrow table, record batch reader or
    dataset (anything that exports an Arrow stream), the path of a parquet, csv or feather file, a folder or a list of
    such, or what has a method `as_table(y, classes)`. y: an array or, where x has named columns, the name of one, the
    others being the features; left out where there is none (targets are 0 then). `classes` turns labels into -1 (the
    first) and +1 (the second).

    Guarantee: errors depend on types, names and sizes only. What is no number (a null, an unreadable cell, a label
    that is not one of the classes) is NaN in the blocks, and `moments` turns such a record into zeros.
    """
    if hasattr(x, "as_table"):
        table: Table = x.as_table(y, classes)
        _describe(estimator, table.names, table.columns)
        return table
    from shapedp.learn.streams import source_of, table_of

    source = source_of(x)
    if source is None:
        rows = checked_rows(estimator, x)
        return InMemory(rows, in_memory_target(y, rows.shape[0], classes))
    table = table_of(source, y, classes)
    _describe(estimator, table.names, table.columns)
    return table


def labels_of(x: Any, y: Any) -> NDArray[Any]:
    """The distinct labels of y, sorted, from one pass over y alone where it is the name of a column.

    Which labels occur is then treated as public; a stream that can be read once only is refused.
    """
    if not isinstance(y, str):
        return distinct(entries(y))
    from shapedp.learn.streams import source_of

    source = source_of(x)
    if source is None or y not in source.names:
        raise ValueError(f"x has no column {y!r}")
    if source.once:
        raise ValueError("the labels of a stream that can be read only once are not known: name the classes")
    seen = [distinct(values).astype(object) for _, (values,) in source.parts((), y)]
    return distinct(np.concatenate([np.empty(0, dtype=object), *seen]))


def in_memory_target(y: Any, records: int | None, classes: Sequence[Any] | None) -> Floats:
    """A vector of targets: numbers, or -1 and +1 for labels; zeros without y."""
    if y is NO_TARGET:
        return np.zeros(records or 0)
    if classes is None:
        return checked_target(y, len(y) if records is None else records)
    labels = entries(y)
    if records is not None and len(labels) != records:
        raise ValueError(f"x and y must have as many rows as each other, got {records} and {len(labels)}")
    return signs(labels, classes)


def signs(labels: NDArray[Any], classes: Sequence[Any]) -> Floats:
    """-1 for the first class, +1 for the second, NaN for anything else."""
    if len(classes) != 2:
        raise ValueError(f"classes must name two labels, got {list(classes)!r}")
    return np.where(equal(labels, classes[1]), 1.0, np.where(equal(labels, classes[0]), -1.0, np.nan))


def _describe(estimator: Any, names: tuple[str, ...] | None, columns: int) -> None:
    """The attributes that scikit-learn sets on fitting."""
    estimator.n_features_in_ = columns
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def without_odd(x: Any, y: Floats) -> tuple[Any, Floats, NDArray[np.bool_]]:
    """The block with every record that holds a NaN or an infinity turned into zeros, and which records were kept."""
    bad = ~np.isfinite(y)
    if hasattr(x, "indptr"):
        entries = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        bad[entries[~np.isfinite(x.data)]] = True
        kept = x if not bad.any() else sparse.diags_array((~bad).astype(np.float64)) @ _zeroed(x)
        return kept, np.where(bad, 0.0, y), ~bad
    bad |= ~np.isfinite(x).all(axis=1)
    return (x if not bad.any() else np.where(bad[:, None], 0.0, x)), np.where(bad, 0.0, y), ~bad


def _zeroed(x: Any) -> Any:
    """A copy of a CSR matrix with NaN and infinity replaced by 0."""
    copy = x.copy()
    copy.data[~np.isfinite(copy.data)] = 0.0
    return copy
