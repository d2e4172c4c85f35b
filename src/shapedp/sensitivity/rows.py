"""Rows of a dense array or a sparse matrix, behind the few operations that clipping needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.arrays import ids, is_sparse, numbers
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count
from shapedp.numerics.outward import ROUNDINGS_2

Integers = NDArray[np.int64]
WHOLE: Integers = np.zeros(1, dtype=np.int64)  # one block: the row
_SUM_BITS = 30
_HUGE = 1e100
_NOTHING = -5000  # below the exponent of any ratio of floats


def grid_below(bound: Floats) -> Floats:
    """A power of two about 2^-30 of each bound; 1 where the bound is 0."""
    _, exponent = np.frexp(np.where(bound > 0, bound, 1.0))
    return np.asarray(np.maximum(np.ldexp(1.0, exponent - _SUM_BITS), 2.0**-1021))


@dataclass(frozen=True, eq=False)
class Rows:
    """`data` is the dense (n, dim) array, or the stored entries of a canonical CSR matrix `matrix`."""

    data: Floats
    dim: int
    matrix: Any = None

    @classmethod
    def read(cls, name: str, rows: Any, dim: int) -> Rows:
        """Checked rows; what is missing, masked, no number or infinite is refused before anything else, unquoted."""
        kind = getattr(rows, "dtype", None)
        if isinstance(kind, np.dtype) and kind.kind not in "iufO":
            raise TypeError(f"{name} must hold real numbers (integers or floats), got dtype {kind.type.__name__}")
        try:
            found = numbers(rows)
        except (TypeError, ValueError) as refused:
            raise type(refused)(f"{name} must be a 2-d array with {dim} columns of numbers: {refused}") from None
        data = np.asarray(found.data if is_sparse(rows) else found, dtype=np.float64)
        if data.size and not math.isfinite(float(data.min()) + float(data.max())) and not np.isfinite(data).all():
            raise ValueError(f"{name} must be finite: turn a record with a missing or infinite cell into zeros first")
        if found.ndim != 2 or found.shape[1] != dim:
            raise ValueError(f"{name} must be a 2-d array with {dim} columns, got shape {found.shape}")
        return cls(data, dim, found) if is_sparse(rows) else cls(data, dim)

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.data.shape[0] if self.matrix is None else self.matrix.shape[0])

    def clamped(self, bounds: Floats) -> Rows:
        """Entries clamped to [-bound, bound] of their column, on the grid."""
        bound = self._per_column(bounds)
        return self._replaced(np.clip(self.data, -bound, bound))._truncated(bounds)

    def pulled_into(self, bounds: Floats, order: int, starts: Integers = WHOLE) -> Rows:
        """Each block of a row scaled down until |entries/bounds|_order <= 1, on the grid.

        Guarantee: exact, whatever the magnitudes: a ratio is kept as a float times a power of two per block,
        and the scaling allows for the rounding of the norm.
        """
        cells = _Cells.of(self, starts)
        entries = self if bounds.all() else self._replaced(np.where(self._per_column(bounds) > 0, self.data, 0.0))
        ratio, shift = entries._relative_to(entries._per_column(np.where(bounds > 0, bounds, 1.0)), cells)
        norm = cells.sums(np.abs(ratio)) if order == 1 else np.sqrt(cells.sums(np.square(ratio)))
        slack = (cells.widest + 8) * ROUNDINGS_2
        with np.errstate(divide="ignore", over="ignore"):
            inside = np.ldexp(norm, shift) * (1 + slack) <= 1
            factor = np.where(inside, 1.0, (1 - 2 * slack) / norm)
        moved = entries.data
        if shift.any():
            moved = np.ldexp(moved, -cells.spread(np.where(inside, 0, shift)))
        return self._replaced(moved * cells.spread(factor))._truncated(bounds)

    def kept(self, keep: NDArray[np.bool_]) -> Rows:
        """The rows of the mask; the others become zero."""
        mask = keep[:, None] if self.matrix is None else keep[self._row_numbers()]
        return self._replaced(np.where(mask, self.data, 0.0))

    def taken(self, columns: Integers) -> Rows:
        """The columns in another order."""
        if self.matrix is None:
            return Rows(np.ascontiguousarray(self.data[:, columns]), self.dim)
        return Rows.read("rows", self.value()[:, columns], self.dim)

    def value(self) -> Any:
        """The array, or a CSR matrix."""
        if self.matrix is None:
            return self.data
        kind = type(self.matrix)
        return kind((self.data, self.matrix.indices.copy(), self.matrix.indptr.copy()), shape=self.matrix.shape)

    def _relative_to(self, bound: Floats, cells: _Cells) -> tuple[Floats, Integers]:
        """Entries over their bound as a float times 2^shift per cell, so that squares do not overflow."""
        with np.errstate(over="ignore"):
            ratio = self.data / bound
        if not ratio.size or max(float(ratio.max()), -float(ratio.min())) < _HUGE:
            return ratio, np.zeros(cells.shape, dtype=np.int64)
        above, exponent = np.frexp(self.data)
        below, offset = np.frexp(bound)
        exponent = np.where(above == 0, _NOTHING, exponent.astype(np.int64) - offset)
        shift = np.maximum(cells.tops(exponent), 0)
        return np.ldexp(above / below, exponent - cells.spread(shift)), shift

    def _per_column(self, values: Floats) -> Floats:
        """One value per column (or a single one), laid beside `data`."""
        if values.size == 1 or self.matrix is None:
            return values
        return np.asarray(values[self.matrix.indices])

    def _row_numbers(self) -> Integers:
        return np.repeat(np.arange(self.count), np.diff(self.matrix.indptr))

    def _replaced(self, data: Floats) -> Rows:
        """The same layout with other entries."""
        return Rows(data, self.dim, self.matrix)

    def _truncated(self, bounds: Floats) -> Rows:
        """Entries moved towards zero to the grid that belongs to each column's bound."""
        grid = self._per_column(grid_below(bounds))
        steps = self.data / grid
        np.trunc(steps, out=steps)
        np.multiply(steps, grid, out=steps)
        return self._replaced(steps)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows cut into blocks of columns: cells form an (n, blocks) array, or the list of those a sparse row stores."""

    shape: tuple[int, ...]
    starts: Integers
    sizes: Integers
    axis: int
    widest: int  # columns of the widest block: never what the rows hold, so that no row depends on another

    @classmethod
    def of(cls, rows: Rows, starts: Integers) -> _Cells:
        """The cells of rows whose blocks begin at the columns `starts`."""
        widths = np.diff(np.append(starts, rows.dim))
        widest = int(widths.max())
        if rows.matrix is None:
            return cls((rows.count, starts.size), starts, widths, 1, widest)
        block = np.searchsorted(starts, rows.matrix.indices, side="right") - 1
        cell = rows._row_numbers() * starts.size + block
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        return cls((first.size,), first, np.diff(np.append(first, cell.size)), 0, widest)

    def sums(self, terms: Floats) -> Floats:
        """Sums over each cell of an array laid out like the data."""
        if not terms.size:
            return np.zeros(self.shape)
        return np.asarray(np.add.reduceat(terms, self.starts, axis=self.axis))

    def tops(self, terms: Integers) -> Integers:
        """The largest entry of each cell."""
        return np.asarray(np.maximum.reduceat(terms, self.starts, axis=self.axis))

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value per cell, laid beside the data."""
        if self.axis == 1 and self.starts.size == 1:
            return values
        return np.repeat(values, self.sizes, axis=self.axis)


def owner_mask(owner: ArrayLike | None, max_rows: int | None, rows: int) -> NDArray[np.bool_] | None:
    """True for the first `max_rows` rows of each owner; None where every row is a person of its own.

    A row whose owner is missing is nobody's first row: it is dropped, so that it takes no other person's place.
    """
    if owner is None and max_rows is None:
        return None
    if owner is None or max_rows is None:
        raise ValueError("owner and max_rows go together: name both, or neither where a row is a person")
    limit = count("max_rows", max_rows)
    number = ids(owner)
    if number.shape != (rows,):
        raise ValueError(f"owner must hold one id per row ({rows}), got shape {number.shape}")
    order = np.argsort(number, kind="stable")
    ordered = number[order]
    first = np.searchsorted(ordered, ordered, side="left")
    keep = np.empty(rows, dtype=np.bool_)
    keep[order] = (np.arange(rows) - first < limit) & (ordered >= 0)
    return keep
