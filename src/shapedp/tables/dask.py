"""Dask arrays and data frames as tables of which only sums leave the workers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from shapedp.boundary.arrays import numbers
from shapedp.boundary.columns import refuse_columns
from shapedp.boundary.refusals import refusal
from shapedp.tables.blocks import NO_TARGET, InMemory, Streamed, Table, entries, same_length, target_of
from shapedp.tables.pieces import Distributed, PieceError, T, worked
from shapedp.tables.sources import pandas_source

FAN_IN = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class OnDask(Distributed):
    """Pairs of delayed features and targets."""

    pieces: tuple[tuple[Any, Any], ...]

    def reduced(self, work: Callable[[Table], T], merge: Callable[[list[T]], T], progress: bool = False) -> T:
        """`work` done on every piece where it is, the results merged in a tree."""
        from dask.base import compute
        from dask.delayed import delayed
        from dask.diagnostics.progress import ProgressBar

        each, together = delayed(_worked, pure=False), delayed(merge, pure=False)
        found = [each(work, x, y, self.names, self.classes, self.version) for x, y in self.pieces]
        while len(found) > 1:
            found = [together(found[i : i + FAN_IN]) for i in range(0, len(found), FAN_IN)]
        failed = ""
        try:
            with ProgressBar() if progress else contextlib.nullcontext():  # type: ignore[no-untyped-call]
                total: T = compute(*found)[0]  # type: ignore[no-untyped-call]
                return total
        except PieceError:
            raise
        except Exception as error:  # of what makes the partitions: it may quote a cell
            failed = type(error).__name__
        raise ValueError(refusal("tables", "no-partition", kind=failed))  # here: without the other error


def dask_table(x: Any, y: Any, classes: Sequence[Any] | None) -> OnDask:
    """A Dask array or data frame with the target y."""
    labels = None if classes is None else tuple(classes)
    return (_of_array if hasattr(x, "chunks") else _of_frame)(x, y, labels)


def _worked(
    work: Callable[[Table], T],
    x: Any,
    y: Any,
    names: tuple[str, ...] | None,
    classes: tuple[Any, ...] | None,
    version: str,
) -> T:
    """`work` on one piece; runs on a worker."""
    return worked(work, partial(_piece, x, y, names, classes), version)


def _piece(x: Any, y: Any, names: tuple[str, ...] | None, classes: tuple[Any, ...] | None) -> Table:
    target = NO_TARGET if y is None else y
    if hasattr(x, "iloc"):
        found = y if isinstance(y, str) else target_of(target, len(x), classes)
        return Streamed(pandas_source(x), names or (), found, classes)
    rows = numbers(x)
    return InMemory(rows, target_of(target, rows.shape[0], classes))


def _of_array(x: Any, y: Any, classes: tuple[Any, ...] | None) -> OnDask:
    if x.dtype.kind not in "fiubO":
        raise TypeError(f"x must hold numbers, got dtype {x.dtype.type.__name__}")
    if 0 in x.shape:
        raise ValueError(f"x must hold at least one record and one feature, got shape {x.shape}")
    if isinstance(y, str):
        raise TypeError("y must be an array: an array x has no named columns")
    whole = x.rechunk({1: -1}) if len(x.chunks[1]) > 1 else x
    pieces = [delayed[0] for delayed in whole.to_delayed()]
    records = None if math.isnan(x.shape[0]) else int(x.shape[0])
    targets = _targets(y, len(pieces), x.chunks[0])
    made = tuple(zip(pieces, targets, strict=True))
    return OnDask(pieces=made, columns=int(x.shape[1]), names=None, records=records, classes=classes)


def _of_frame(x: Any, y: Any, classes: tuple[Any, ...] | None) -> OnDask:
    named = isinstance(y, str)
    if named and y not in x.columns:
        raise ValueError(f"x has no column {y!r}; it has {', '.join(map(str, x.columns))}")
    names = tuple(name for name in x.columns if not (named and name == y))
    if not names:
        raise ValueError("x must have at least one feature")
    refuse_columns(pandas_source(x._meta).not_numeric((*names, y) if named and classes is None else names))
    pieces = x.to_delayed()
    targets = [y] * len(pieces) if named else _targets(y, len(pieces), None)
    made = tuple(zip(pieces, targets, strict=True))
    return OnDask(pieces=made, columns=len(names), names=names, records=None, classes=classes)


def _targets(y: Any, pieces: int, sizes: tuple[Any, ...] | None) -> list[Any]:
    """The target of each piece."""
    if y is NO_TARGET:
        return [None] * pieces
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    records = math.nan if sizes is None else sum(sizes)
    if not hasattr(y, "to_delayed"):
        if math.isnan(records):
            raise ValueError("the sizes of x's partitions are not known: y must be a Dask array or a column's name")
        from dask import array

        y = array.from_array(entries(y), chunks=-1)  # type: ignore[no-untyped-call]
    if hasattr(y, "chunks"):
        if y.ndim != 1:
            raise ValueError(f"y must have one dimension, got {y.ndim}")
        if not math.isnan(records) and not math.isnan(y.shape[0]):
            same_length(int(records), len(y))
            y = y.rechunk((sizes,))
    found = list(y.to_delayed())
    if len(found) != pieces:
        raise ValueError(f"x has {pieces} partitions, y has {len(found)}: repartition one like the other")
    return found
