"""Second moments partition by partition: only (d + 2) x (d + 2) matrices leave the workers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.arrays import numbers
from shapedp.boundary.columns import refuse_columns
from shapedp.learn.base import entries
from shapedp.learn.moments import Bounds, Moments, Partial, one_blas_thread
from shapedp.learn.streams import PandasFrame, Streamed
from shapedp.learn.tables import NO_TARGET, InMemory, Table, in_memory_target

Floats = NDArray[np.float64]
FAN_IN = 8


def fit(estimator: Any, x: Any, y: Any = None) -> Any:
    """`estimator.fit(x, y)` for a Dask array or data frame x; y is one too, an array, or a column's name.

    The sums run where Dask runs: in threads, or on the workers of the current `distributed.Client`. For estimators
    and solvers that need second moments only: `LinearRegression`, `PCA`, `LogisticRegression(solver="mixing")`.

    Guarantee: noise is drawn once, here, after the sums have arrived: a worker that is lost and computed again adds
    nothing to what is released. The sums are exact integers: where the chunks are multiples of 4096 rows (the last
    one free) the result has the bits of a local fit, otherwise it differs within `Moments.error`.
    """
    if getattr(estimator, "classes", ()) is None:
        raise ValueError("classes must be given: labels are not collected from the workers")
    return estimator.fit(Partitioned(x), y)


class PieceError(ValueError):
    """A partition has other types or sizes than it should."""


class Partitioned:
    """A Dask array or data frame as estimators read it."""

    def __init__(self, x: Any) -> None:
        if getattr(x, "ndim", 0) != 2 or not hasattr(x, "to_delayed"):
            raise TypeError(f"x must be a two-dimensional Dask array or data frame, got {type(x).__name__}")
        self._x = x
        self.shape = (len(x.chunks[0]) if hasattr(x, "chunks") else x.npartitions, x.shape[1])

    def as_table(self, y: Any, classes: Sequence[Any] | None) -> Table:
        """The table that `read_table` asks for."""
        labels = None if classes is None else tuple(classes)
        if hasattr(self._x, "chunks"):
            return _of_array(self._x, y, labels)
        return _of_frame(self._x, y, labels)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        raise TypeError("this estimator or solver reads the records themselves, not only sums: use solver='mixing'")


@dataclass(frozen=True, eq=False)
class Distributed:
    """Pieces of a table that are somewhere else: pairs of delayed features and targets."""

    pieces: tuple[tuple[Any, Any], ...]
    columns: int
    names: tuple[str, ...] | None
    records: int | None
    classes: tuple[Any, ...] | None

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        """Records stay where they are."""
        raise TypeError("this estimator or solver reads the records themselves, not only sums: use solver='mixing'")

    def moments(self, bounds: Bounds, progress: bool = False) -> Moments:
        """The moments of all pieces: summed where they are, merged in a tree, finished here."""
        from dask.base import compute
        from dask.delayed import delayed

        add, merge = delayed(_sums, pure=False), delayed(_merged, pure=False)
        sums = [add(x, y, self.names, self.columns, bounds, self.classes) for x, y in self.pieces]
        while len(sums) > 1:
            sums = [merge(sums[i : i + FAN_IN]) for i in range(0, len(sums), FAN_IN)]
        failed = ""
        try:
            with _shown(progress):
                (total,) = compute(*sums)  # type: ignore[no-untyped-call]
        except PieceError:
            raise
        except Exception as error:  # of what makes the partitions: it may quote a cell
            failed = type(error).__name__
        if failed:  # raised here, so that it does not carry the other error along
            raise ValueError(
                f"a partition could not be computed ({failed}): compute x alone to see why; give read_csv and its kin "
                "the types of the columns (dtype=), or pass the path of the file itself"
            )
        found: Moments = total.moments()
        return found


def _sums(
    x: Any, y: Any, names: tuple[str, ...] | None, columns: int, bounds: Bounds, classes: tuple[Any, ...] | None
) -> Partial:
    """The moments of one piece; runs on a worker."""
    part = Partial(columns, bounds)
    try:
        with one_blas_thread():
            for block in _piece(x, y, names, classes).blocks():
                part.add(*block)
    except (ValueError, TypeError) as error:  # of the reader, which quotes no cell
        raise PieceError(str(error)) from None
    return part


def _piece(x: Any, y: Any, names: tuple[str, ...] | None, classes: tuple[Any, ...] | None) -> Table:
    if hasattr(x, "iloc"):
        target = y if isinstance(y, str) else in_memory_target(NO_TARGET if y is None else y, len(x), classes)
        return Streamed(PandasFrame(x), names or (), target, classes)
    rows = numbers(x)
    return InMemory(rows, in_memory_target(NO_TARGET if y is None else y, rows.shape[0], classes))


def _merged(parts: list[Partial]) -> Partial:
    """A new sum; those given are left as they are, for they may be asked for again."""
    total = Partial(parts[0].columns, parts[0].bounds)
    for part in parts:
        total.merge(part)
    return total


def _of_array(x: Any, y: Any, classes: tuple[Any, ...] | None) -> Distributed:
    if x.dtype.kind not in "fiubO":
        raise TypeError(f"x must hold numbers, got dtype {x.dtype}")
    if 0 in x.shape:
        raise ValueError(f"x must hold at least one record and one feature, got shape {x.shape}")
    if isinstance(y, str):
        raise TypeError("y must be an array: an array x has no named columns")
    whole = x.rechunk({1: -1}) if len(x.chunks[1]) > 1 else x
    pieces = [delayed[0] for delayed in whole.to_delayed()]
    records = None if math.isnan(x.shape[0]) else int(x.shape[0])
    targets = _targets(y, len(pieces), x.chunks[0])
    return Distributed(tuple(zip(pieces, targets, strict=True)), int(x.shape[1]), None, records, classes)


def _of_frame(x: Any, y: Any, classes: tuple[Any, ...] | None) -> Distributed:
    named = isinstance(y, str)
    if named and y not in x.columns:
        raise ValueError(f"x has no column {y!r}; it has {', '.join(map(str, x.columns))}")
    names = tuple(name for name in x.columns if not (named and name == y))
    if not names:
        raise ValueError("x must have at least one feature")
    refuse_columns(PandasFrame(x._meta).odd((*names, y) if named and classes is None else names))
    pieces = x.to_delayed()
    targets = [y] * len(pieces) if named else _targets(y, len(pieces), None)
    return Distributed(tuple(zip(pieces, targets, strict=True)), len(names), names, None, classes)


def _targets(y: Any, pieces: int, sizes: tuple[Any, ...] | None) -> list[Any]:
    """The target of each piece."""
    if y is NO_TARGET:
        return [None] * pieces
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    known = sizes is not None and not any(math.isnan(size) for size in sizes)
    if not hasattr(y, "to_delayed"):
        if not known:
            raise ValueError("the sizes of x's partitions are not known: y must be a Dask array or a column's name")
        y = _array().from_array(entries(y), chunks=-1)
    if hasattr(y, "chunks"):
        if y.ndim != 1:
            raise ValueError(f"y must have one dimension, got {y.ndim}")
        if known and not math.isnan(y.shape[0]):
            if y.shape[0] != sum(sizes or ()):
                raise ValueError(f"x and y must have as many rows as each other, got {sum(sizes or ())} and {len(y)}")
            y = y.rechunk((sizes,))
    found = list(y.to_delayed())
    if len(found) != pieces:
        raise ValueError(f"x has {pieces} partitions, y has {len(found)}: repartition one like the other")
    return found


def _shown(progress: bool) -> contextlib.AbstractContextManager[Any]:
    if not progress:
        return contextlib.nullcontext()
    from dask.diagnostics.progress import ProgressBar

    shown: contextlib.AbstractContextManager[Any] = ProgressBar()  # type: ignore[no-untyped-call]
    return shown


def _array() -> Any:
    from dask import array

    return array
