"""Records with a target, read in blocks of rows from whatever holds them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shapedp.boundary.arrays import distinct, equal, floats, values
from shapedp.boundary.columns import refuse_columns
from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import boolean
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import entries as walked
from shapedp.numerics.checks import one_of
from shapedp.tables.sources import CHUNK, Part, Source, source_of

NO_TARGET: Any = object()
TYPES = ("number", "text")


class UndeclaredTypesWarning(UserWarning):
    """Columns of a csv file are read as numbers without a declared type: in a column of text no record counts.

    Example: `warnings.simplefilter("error", UndeclaredTypesWarning)` refuses such columns.
        >>> issubclass(UndeclaredTypesWarning, UserWarning)
        True
    """


class Table(Protocol):
    """Records with a target, read in blocks.

    Examples
    --------
    >>> table: Table = InMemory(np.ones((3, 2)), np.zeros(3))
    >>> sum(len(target) for _, target in table.blocks())
    3
    """

    @property
    def records(self) -> int | None:
        """The number of records, public; None where only reading them tells (a stream)."""

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
    """A dense array or CSR matrix, and a target with an entry per row.

    Parameters
    ----------
    x, y
        The features, a row per record, and the target.
    names
        The names of the features, where they have any.

    Examples
    --------
    >>> table = InMemory(np.ones((3, 2)), np.zeros(3))
    >>> table.records, table.columns, [features.shape for features, _ in table.blocks()]
    (3, 2, [(3, 2)])
    """

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


@dataclass(frozen=True, eq=False)
class Streamed:
    """A source as a table. The target is the name of a column, a vector with an entry per record, or None: zeros."""

    source: Source
    names: tuple[Any, ...]
    target: Any
    classes: tuple[Any, ...] | None = None

    @property
    def records(self) -> int | None:
        return self.source.records

    @property
    def columns(self) -> int:
        return len(self.names)

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        """Blocks of CHUNK rows, whatever the batches of the source; each column is contiguous."""
        block, filled = np.empty((self.columns + 1, CHUNK)), 0
        for size, columns in self._batches():
            start = 0
            while start < size:
                taken = min(CHUNK - filled, size - start)
                for row, column in zip(block, columns, strict=True):
                    row[filled : filled + taken] = column[start : start + taken]
                start, filled = start + taken, filled + taken
                if filled == CHUNK:
                    yield block[:-1].T, block[-1]
                    block, filled = np.empty((self.columns + 1, CHUNK)), 0
        if filled:
            yield block[:-1, :filled].T, block[-1, :filled]

    def _batches(self) -> Iterator[Part]:
        """Batches of the features and the target."""
        if isinstance(self.target, str) and self.classes is None:
            yield from self.source.parts((*self.names, self.target), None)
        elif isinstance(self.target, str):
            for size, columns in self.source.parts(self.names, self.target):
                yield size, [*columns[:-1], signs(columns[-1], self.classes or ())]
        else:
            yield from self._beside()

    def _beside(self) -> Iterator[Part]:
        """Batches of the features beside a target held in memory."""
        done = 0
        for size, columns in self.source.parts(self.names, None):
            target = np.zeros(size) if self.target is None else self.target[done : done + size]
            done += size
            if len(target) != size:
                break
            yield size, [*columns, target]
        if self.target is not None:
            same_length(f"more than {done}" if done > len(self.target) else done, len(self.target))


class Columns:
    """Some columns of a frame, Arrow data or files. Estimators take it as x, with the name of the target as y.

    Parameters
    ----------
    x: a pandas or polars frame, a pyarrow table, dataset or record batch reader, or the path of a parquet, csv or
        feather file, a folder, or a list of paths.
    features: the names of the columns to use.
    header: False where the first row of a csv file is a record. Its columns are then named "0", "1", ...
    types: of a csv file, whose columns have none: "number" for all columns used, or a dict that says "number" or "text"
        for each of them. A column of text among the features is refused before a record is read.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [30.0, 40.0], "name": ["a", "b"], "income": [1.0, 2.0]})
    >>> Columns(frame, ["age"]).as_table("income", None).columns
    1
    """

    def __init__(
        self, x: Any, features: Sequence[str], *, header: bool = True, types: Mapping[str, str] | str | None = None
    ) -> None:
        source = _source(x, boolean("header", header))
        if source is None:
            raise TypeError(f"x must be a frame, Arrow data or a path, got {type(x).__name__}")
        self.source, self.features = source if types is None else _typed(source, types), walked("features", features)

    def as_table(self, y: Any, classes: Sequence[Any] | None) -> Streamed:
        """The columns with the target y; what `open_table` asks for."""
        return _table(self.source, y, classes, self.features)

    def loaded(self, label: str) -> tuple[Any, NDArray[Any]]:
        """The features as a pandas frame and the column of labels, in memory."""
        import pandas

        self.as_table(label, (0, 1))
        parts = [columns for _, columns in self.source.parts(self.features, label)]
        *found, labels = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        return pandas.DataFrame(dict(zip(self.features, found, strict=True))), np.asarray(labels)


def open_table(x: Any, y: Any, classes: Sequence[Any] | None) -> Table | None:
    """x with its target y as a table; None where x is an array, a sparse matrix or a list.

    x: a pandas or polars frame, a pyarrow table, record batch reader or dataset (anything that exports an Arrow
    stream), the path of a parquet, csv or feather file, a folder or a list of such, or an object with a method
    `as_table(y, classes)`. y: an array, the name of a column (all others are then features), or `NO_TARGET`.
    """
    if hasattr(x, "as_table"):
        table: Table = x.as_table(y, classes)
        return table
    source = source_of(x)
    return None if source is None else _table(source, y, classes)


def _typed(source: Source, types: Mapping[str, str] | str) -> Source:
    """A csv source whose columns have the types that the user declares."""
    if source.declared:
        raise ValueError("types are for csv files: other sources declare their own")
    if isinstance(types, str):
        one_of("types", types, TYPES[:1])
        return replace(source, not_numeric=lambda names: {}, typed=True)
    known = {name: one_of(f"the type of {name}", kind, TYPES) for name, kind in types.items()}

    def not_numeric(names: tuple[Any, ...]) -> dict[Any, str]:
        missing = [str(name) for name in names if name not in known]
        if missing:
            raise ValueError(f"types must name every column that is used, {', '.join(missing)} too")
        return {name: "text" for name in names if known[name] != "number"}

    return replace(source, not_numeric=not_numeric, typed=True)


def _source(x: Any, header: bool = True) -> Source | None:
    return x.source if isinstance(x, Columns) else source_of(x, header=header)


def _table(source: Source, y: Any, classes: Sequence[Any] | None, features: tuple[Any, ...] | None = None) -> Streamed:
    """A source as a table; without `features` every column but the target is one."""
    named = isinstance(y, str)
    chosen = tuple(name for name in source.names if not (named and name == y)) if features is None else features
    for name in (*chosen, *([y] if named else [])):
        if name not in source.names:
            listed = f"; it has {', '.join(map(str, source.names))}" if source.declared else " in its first row"
            raise ValueError(f"x has no column {name!r}{listed}")
    if len(set(chosen)) < len(chosen) or (named and y in chosen):
        raise ValueError("a column is either the target or a feature, once")
    refuse_columns(source.not_numeric((*chosen, y) if named and classes is None else chosen))
    if not source.declared and not source.typed:
        warnings.warn(refusal("tables", "undeclared"), UndeclaredTypesWarning, stacklevel=2)
    if source.records == 0 or not chosen:
        raise ValueError(f"x must hold at least one record and one feature, got {source.records} and {len(chosen)}")
    target = y if named else None if y is NO_TARGET else target_of(y, source.records, classes)
    return Streamed(source, chosen, target, None if classes is None else tuple(map(source.label, classes)))


def labels_of(x: Any, y: Any) -> NDArray[Any]:
    """The distinct labels of y, sorted, from one pass over y alone where it is the name of a column.

    Which labels occur is then treated as public; a stream that can be read only once is refused.
    """
    if not isinstance(y, str):
        return distinct(entries(y))
    source = _source(x)
    if source is None or y not in source.names:
        raise ValueError(f"x has no column {y!r}")
    if source.once:
        raise ValueError("the labels of a stream that can be read only once are not known: name the classes")
    seen = [distinct(found).astype(object) for _, (found,) in source.parts((), y)]
    return distinct(np.concatenate([np.empty(0, dtype=object), *seen]))


def target_of(y: Any, records: int | None, classes: Sequence[Any] | None = None) -> Floats:
    """A target in memory, one entry per record: numbers, or -1 and +1 for labels; zeros for `NO_TARGET`."""
    if y is NO_TARGET:
        return np.zeros(records or 0)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    found = _flat(floats(y)) if classes is None else signs(entries(y), classes)
    if records is not None:
        same_length(records, len(found))
    return found


def signs(labels: NDArray[Any], classes: Sequence[Any]) -> Floats:
    """-1 for the first class, +1 for the second, NaN for anything else."""
    if len(classes) != 2:
        raise ValueError(f"classes must name two labels, got {list(classes)!r}")
    return np.where(equal(labels, classes[1]), 1.0, np.where(equal(labels, classes[0]), -1.0, np.nan))


def entries(y: Any) -> NDArray[Any]:
    """Labels, one entry per record; see `boundary.arrays.values`."""
    return _flat(values(y))


def same_length(records: int | str, found: int) -> None:
    """Refuse a target with more or fewer entries than there are records."""
    if records != found:
        raise ValueError(f"x and y must have as many rows as each other, got {records} and {found}")


def _flat(y: NDArray[Any]) -> NDArray[Any]:
    """A vector; a single column becomes one, with scikit-learn's warning."""
    if y.ndim == 1:
        return y
    from sklearn.utils.validation import column_or_1d

    return np.asarray(column_or_1d(y, warn=True))


def finite_records(x: Any, y: Floats) -> tuple[Any, Floats]:
    """The block, with every record that holds a NaN or an infinity turned into zeros."""
    bad = ~np.isfinite(y)
    if not hasattr(x, "indptr"):
        bad |= ~np.isfinite(x).all(axis=1)
        return (np.where(bad[:, None], 0.0, x) if bad.any() else x), np.where(bad, 0.0, y)
    missing = ~np.isfinite(x.data)
    bad[np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))[missing]] = True
    if bad.any():
        x = x.copy()
        x.data[missing] = 0.0
        x = sparse.diags_array((~bad).astype(np.float64)) @ x
    return x, np.where(bad, 0.0, y)
