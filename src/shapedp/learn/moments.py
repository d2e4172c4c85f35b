"""The second moments of clipped records [x, c, y]: all that private least squares ever reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, reduce
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.progress import bar
from shapedp.boundary.refusals import refusal
from shapedp.numerics.arrays import Floats, dots
from shapedp.numerics.checks import count, positive
from shapedp.numerics.gram import BLOCK, Columns, GramSum, gram_error, square_of
from shapedp.numerics.outward import ABOVE_8, ROUNDINGS_2
from shapedp.numerics.threads import cores, each
from shapedp.sensitivity import L2
from shapedp.tables.blocks import Table
from shapedp.tables.partitions import Distributed
from shapedp.tables.sources import CHUNK

Mask = NDArray[np.bool_]
HUGE = 1e200  # squares up to here are sums without overflow
UNITS = (1e-40, 1e40)


def in_units(name: str, value: Any, units: tuple[float, float] = UNITS) -> float:
    """A positive number of ordinary size, so that no square of it overflows or vanishes."""
    found = positive(name, value)
    if not units[0] < found < units[1]:
        raise ValueError(f"{name} must lie between {units[0]:g} and {units[1]:g}, got {found!r}: use other units")
    return found


@dataclass(frozen=True)
class Bounds:
    """|x|_2 <= feature, |y| <= target, and the constant put beside x for the intercept (0: no such column)."""

    feature: float
    target: float
    constant: float = 0.0

    @classmethod
    def of(cls, feature_bound: Any, target_bound: Any, *, intercept: bool) -> Bounds:
        """The bounds that a user gave, checked.

        The constant for the intercept is the power of two nearest half the feature bound: no record is rounded.
        """
        feature = in_units("feature_bound", feature_bound)
        target = in_units("target_bound", target_bound)
        return cls(feature, target, float(2.0 ** round(math.log2(feature / 2))) if intercept else 0.0)

    @property
    def beside(self) -> list[float]:
        """The bounds of the columns beside x: the constant, where there is one, and the target."""
        return [self.constant, self.target] if self.constant > 0 else [self.target]

    @property
    def design(self) -> float:
        """The bound on |[x, c]|_2, rounded up."""
        return math.hypot(self.feature, self.constant) * ABOVE_8

    @property
    def row(self) -> float:
        """The bound on |[x, c, y]|_2, rounded up."""
        return math.hypot(self.feature, self.constant, self.target) * ABOVE_8


@dataclass(frozen=True, eq=False)
class Moments:
    """Z^T Z of records z = [x, c, y] within `bounds`; a record with a NaN or an infinity is a row of zeros.

    Guarantee: off by at most `error` in the Frobenius norm, from rounding; the same whatever the number of threads.
    """

    gram: Floats
    records: int
    bounds: Bounds
    table: Table | None = None  # for solvers that read the records again

    @property
    def design(self) -> Floats:
        """The moments of [x, c]."""
        return self.gram[:-1, :-1]

    @property
    def cross(self) -> Floats:
        """[x, c]^T y."""
        return self.gram[:-1, -1]

    @property
    def error(self) -> float:
        """A bound on the rounding, from the sizes and the bounds alone."""
        return gram_error(self.records, len(self.gram)) * self.bounds.row**2 * ABOVE_8


class Partial:
    """The moments of some of the records, as exact integers: partial results merge in any order to the same bits.

    `cross`: of the columns beside x only, with themselves and with x.
    """

    def __init__(self, columns: int, bounds: Bounds, cross: bool = False) -> None:
        self.columns, self.bounds = columns, bounds
        self.records = self.groups = 0
        self.pieces = 1  # partitions of a collection, or threads
        widths = np.array([*[bounds.feature] * columns, *bounds.beside])
        self.total, self.width = GramSum(widths, len(bounds.beside) if cross else None), len(widths)
        self._unchanged = not cross  # no row had to change so far, and x^T x is wanted

    def add(self, x: Any, y: Floats) -> None:
        """Add records, in groups of 4096 and blocks of 1024."""
        records = len(y)
        columns, few = np.empty((self.width - self.columns, min(CHUNK, records))), min(BLOCK, records)
        scratch = np.empty((few, self.columns)), np.empty((self.columns, self.columns))

        def blocks(start: int, beside: Floats, odd: Mask | None) -> Iterator[Columns]:
            for at in range(0, beside.shape[1], BLOCK):
                cut, rows = slice(at, at + BLOCK), x[start + at : start + at + BLOCK]
                square = scratch[1] if self._unchanged else None
                found = within(rows, beside[:, cut], odd if odd is None else odd[cut], self.bounds, scratch[0], square)
                self._unchanged = found.square is not None
                yield found

        with np.errstate(all="ignore"):
            for start in range(0, records, CHUNK):
                self.total.add(blocks(start, *besides(y[start : start + CHUNK], self.bounds, columns)))
                self.groups += 1
        self.records += records

    def merge(self, other: Partial) -> Partial:
        """Add what another part found."""
        self.total.merge(other.total)
        self.records += other.records
        self.groups += other.groups
        self.pieces += other.pieces
        return self

    def moments(self) -> Moments:
        """The sum so far."""
        return Moments(self.value(), self.records, self.bounds)

    def value(self) -> Floats:
        """The matrix, or its last rows."""
        if not self.records:
            raise ValueError("x must hold at least one record, got 0 records")
        groups = max(self.groups, self.records // CHUNK + self.pieces)  # at most so many, whatever the sizes of pieces
        if groups > self.records // 64 + 64:  # as many as `gram_error` allows for
            raise ValueError(refusal("learn", "too-many-pieces", records=self.records, groups=groups))
        return self.total.value()


def moments(table: Table, bounds: Bounds, *, progress: bool = False, threads: int | None = None) -> Moments:
    """One pass over the table, in `threads` threads (as many as there are cores), with one more block each in memory.

    Where the records are on Dask workers, each piece is summed there.
    """
    if isinstance(table, Distributed):
        return table.reduced(partial(summed, table.columns, bounds), merged, progress).moments()
    return totals(table, bounds, progress=progress, threads=threads).moments()


def totals(
    table: Table, bounds: Bounds, *, progress: bool = False, threads: int | None = None, cross: bool = False
) -> Partial:
    """The same sums of records in this process, or the last rows of them."""
    share = -(-table.records // CHUNK) if table.records else cores()
    workers = min(cores() if threads is None else count("threads", threads), share)
    parts: list[Partial] = []
    with one_blas_thread(), bar(table.records, " records", progress) as advance:

        def worker() -> Callable[[tuple[Any, Floats]], None]:
            part = Partial(table.columns, bounds, cross)
            parts.append(part)

            def work(block: tuple[Any, Floats]) -> None:
                part.add(*block)
                advance(len(block[1]))

            return work

        each(table.blocks(), worker, workers)
    return reduce(Partial.merge, parts)


def summed(columns: int, bounds: Bounds, table: Table, *, cross: bool = False) -> Partial:
    """The moments of one piece; runs on a worker."""
    part = Partial(columns, bounds, cross)
    with one_blas_thread():
        for block in table.blocks():
            part.add(*block)
    return part


def merged(parts: list[Partial]) -> Partial:
    """A new sum; those given are left as they are, for they may be asked for again."""
    return reduce(Partial.merge, parts[1:], deepcopy(parts[0]))


@dataclass(frozen=True, eq=False)
class Reading:
    """A table about to be read: `records` before the pass where they are known, `moments` by one pass, once."""

    table: Table
    bounds: Bounds
    progress: bool = False

    @cached_property
    def records(self) -> int:
        """The number of records; a stream is read for it."""
        return self.moments.records if self.table.records is None else self.table.records

    @cached_property
    def moments(self) -> Moments:
        """The moments."""
        return replace(moments(self.table, self.bounds, progress=self.progress), table=self.table)


def clipped(x: Any, y: Floats, bounds: Bounds, buffer: Floats) -> Floats:
    """The rows of `within` side by side, [x, c, y], written into the buffer."""
    rows, width = buffer[: len(y)], x.shape[1]
    beside, odd = besides(y, bounds, np.empty((buffer.shape[1] - width, len(y))))
    inside = within(x, beside, odd, bounds, np.empty((len(y), width)))
    rows[:, :width], rows[:, width:] = inside.wide, inside.beside.T
    return rows


def besides(y: Floats, bounds: Bounds, out: Floats) -> tuple[Floats, Mask | None]:
    """c and y within its bound as rows of `out`; and where y is not finite, None where it is throughout."""
    beside, finite = out[:, : len(y)], np.isfinite(y)
    if bounds.constant > 0:
        beside[0] = bounds.constant
    np.clip(y, -bounds.target, bounds.target, out=beside[-1])
    return beside, None if finite.all() else ~finite


def within(
    x: Any, beside: Floats, odd: Mask | None, bounds: Bounds, features: Floats, square: Floats | None = None
) -> Columns:
    """Rows [x, c, y] within the bounds; records that are not finite become zeros.

    `beside` and `odd` come from `besides`; x where it lies if it is a float64 array by rows in which no row changes,
    else written into `features`. `square` is a place for x^T x, which is computed before the rows are looked at: BLAS
    reads them from memory as fast as from the cache, where they are afterwards. It is answered where no row changes.

    Guarantee: |x|_2 <= bounds.feature exactly: a row is left as it is if its computed norm, rounding allowed for, is
    below the bound, otherwise scaled to just inside. No record depends on another. What is returned has the same bits
    and the same layout wherever x came from.
    """
    rows = x if isinstance(x, np.ndarray) and x.dtype == np.float64 and x.flags.c_contiguous else None
    if rows is None:
        rows, square = _copied(x, features), None
    elif square is not None:
        square_of(rows, square)
    norms = dots(rows, rows)  # of every row, from this row alone
    slack = (x.shape[1] + 8) * ROUNDINGS_2
    far = not norms.max() <= bounds.feature**2 * (1 - 2 * slack)
    if far or odd is not None:
        rows, square = _copied(x, features) if rows is x else rows, None
    if far:
        _pull(Columns(rows, beside), norms, bounds.feature, slack)
    if odd is not None:
        rows[odd], beside[:, odd] = 0.0, 0.0
    return Columns(rows, beside, square)


def _copied(x: Any, features: Floats) -> Floats:
    rows = features[: x.shape[0]]
    rows[...] = x.toarray() if hasattr(x, "toarray") else x
    return rows


def _pull(rows: Columns, square: Floats, radius: float, slack: float) -> None:
    """Rows near or beyond the bound scaled inside; by the exact clip where the square overflows; odd ones zeros."""
    features = rows.wide
    outside = np.flatnonzero(~(square <= radius**2 * (1 - 2 * slack)))
    known = square[outside] < HUGE
    near, far = outside[known], outside[~known]
    features[near] *= (radius * (1 - 2 * slack) / np.sqrt(square[near]))[:, None]
    if far.size:
        finite = np.isfinite(features[far]).all(axis=1)
        features[far[~finite]], rows.beside[:, far[~finite]] = 0.0, 0.0
        large = far[finite]
        if large.size:
            features[large] = L2(radius, dim=features.shape[1]).clip(features[large], adjacency="zero-out")[0]


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


_LIMIT = Lock()
_limited: list[Any] = []


@contextmanager
def one_blas_thread(wanted: bool = True) -> Iterator[None]:
    """Matrix products in the calling thread only: their bits do not depend on the number of cores.

    Small ones are also faster so: threads that wait for each other stall where other processes hold the cores.
    """
    if not wanted:
        yield
        return
    with _LIMIT:
        if not _limited:
            _limited.append(_controller().limit(limits=1, user_api="blas"))
        _limited.append(None)
    try:
        yield
    finally:
        with _LIMIT:
            _limited.pop()
            if len(_limited) == 1:
                _limited.pop().restore_original_limits()
