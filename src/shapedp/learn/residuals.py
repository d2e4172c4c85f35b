"""One more pass over the records: clipped residuals of given weights against the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shapedp.learn.moments import Bounds, Moments, Partial, merged, summed, totals
from shapedp.numerics.arrays import Floats
from shapedp.tables.blocks import InMemory, Streamed, Table
from shapedp.tables.partitions import Distributed

Mean = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Residuals:
    """A table whose target is (y - m([x, c] . weights))/clip, with x and y pulled within the bounds.

    m is the `mean` of a score, one score at a time; None: the score itself.

    Guarantee: the new target of a record depends on that record, the weights and the bounds alone; `moments` clips it.
    """

    table: Table
    weights: Floats
    clip: float
    bounds: Bounds
    mean: Mean | None = None

    @property
    def records(self) -> int | None:
        return self.table.records

    @property
    def columns(self) -> int:
        return self.table.columns

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.table.names

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        """The features, dense and row by row, and the new target."""
        for x, y in self.table.blocks():
            rows = x.toarray() if hasattr(x, "toarray") else np.ascontiguousarray(x, dtype=np.float64)
            yield rows, self._of(rows, y)

    def _of(self, rows: Floats, y: Floats) -> Floats:
        width = rows.shape[1]
        with np.errstate(all="ignore"):
            shrink = np.minimum(1.0, self.bounds.feature / np.sqrt(np.einsum("ij,ij->i", rows, rows)))
            found = np.einsum("ij,j->i", rows, self.weights[:width]) * shrink
            if self.bounds.constant:
                found += self.bounds.constant * self.weights[-1]
            found = found if self.mean is None else self.mean(found)
            found = (np.clip(y, -self.bounds.target, self.bounds.target) - found) / self.clip
            return np.where(np.isfinite(y), found, np.nan)


def gradient(known: Moments, weights: Floats, clip: float, mean: Mean | None = None) -> Floats:
    """The sum over records of [x, c] r, r = (y - m([x, c] . weights))/clip clipped to [-1, 1], by one more pass.

    Rounding is that of the moments of [x, c, r].
    """
    if known.table is None:
        raise ValueError("this solver reads the records again: give it a table that can be read more than once")
    bounds = replace(known.bounds, target=1.0)
    if isinstance(known.table, Distributed):
        work = partial(_piece, weights, clip, mean, known.bounds, bounds)
        found = known.table.reduced(work, merged)
    else:
        found = totals(Residuals(known.table, weights, clip, known.bounds, mean), bounds, cross=True)
    if found.records != known.records:
        raise ValueError("the records changed between two passes over them: give a table that stays as it is")
    return found.value()[-1, :-1]


def _piece(weights: Floats, clip: float, mean: Mean | None, given: Bounds, bounds: Bounds, table: Table) -> Partial:
    """The sums of one piece; runs on a worker."""
    return summed(table.columns, bounds, Residuals(table, weights, clip, given, mean), cross=True)


def rereadable(table: Table) -> bool:
    """Whether a table is known to give its records more than once."""
    if isinstance(table, Streamed):
        return not table.source.once
    return isinstance(table, InMemory | Distributed)
