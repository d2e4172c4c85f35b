"""Rows of a dense array or a sparse matrix, behind the few operations that clipping needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from shapedp.numerics.checks import count, finite

Floats = NDArray[np.float64]
_SUM_BITS = 30
_HUGE = 1e100


def grid_below(bound: Floats) -> Floats:
    """A power of two about 2^-30 of each bound; 1 where the bound is 0."""
    _, exponent = np.frexp(np.where(bound > 0, bound, 1.0))
    return np.asarray(np.maximum(np.ldexp(1.0, exponent - _SUM_BITS), 2.0**-1021))


@dataclass(frozen=True, eq=False)
class Rows:
    """`data` is the dense (n, dim) array, or the stored entries of a CSR matrix `matrix`."""

    data: Floats
    dim: int
    matrix: Any = None

    @classmethod
    def read(cls, name: str, rows: Any, dim: int) -> Rows:
        """Checked rows; NaN and infinity are refused before anything else."""
        if sparse.issparse(rows):
            matrix: Any = rows.tocsr()  # type: ignore[attr-defined]
            if matrix.ndim != 2 or matrix.shape[1] != dim:
                raise ValueError(f"{name} must have {dim} columns, got shape {matrix.shape}")
            data = finite(name, matrix.data)
            if not matrix.has_canonical_format:
                matrix = matrix.astype(np.float64)
                matrix.sum_duplicates()
                data = finite(name, matrix.data)
            return cls(data, dim, matrix)
        array = finite(name, rows)
        if array.ndim != 2 or array.shape[1] != dim:
            raise ValueError(f"{name} must be a 2-d array with {dim} columns, got shape {array.shape}")
        return cls(array, dim)

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.data.shape[0] if self.matrix is None else self.matrix.shape[0])

    def per_column(self, values: Floats) -> Floats:
        """One value per column (or a single one), laid beside `data`."""
        if values.size == 1 or self.matrix is None:
            return values
        return np.asarray(values[self.matrix.indices])

    def _row_numbers(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.count), np.diff(self.matrix.indptr))

    def row_sums(self, terms: Floats) -> Floats:
        """Sums over each row of an array laid out like `data`."""
        if self.matrix is None:
            return np.asarray(terms.sum(axis=1))
        return np.bincount(self._row_numbers(), weights=terms, minlength=self.count).astype(np.float64)

    def block_sums(self, terms: Floats, starts: NDArray[np.int64]) -> Floats:
        """Sums over each block of columns of each row: shape (n, blocks)."""
        if self.matrix is None:
            if not self.count:
                return np.zeros((0, starts.size))
            return np.asarray(np.add.reduceat(terms, starts, axis=1))
        block = np.searchsorted(starts, self.matrix.indices, side="right") - 1
        cell = self._row_numbers() * starts.size + block
        return np.bincount(cell, weights=terms, minlength=self.count * starts.size).reshape(self.count, starts.size)

    def row_tops(self, terms: Floats) -> Floats:
        """The largest entry of each row of a non-negative array laid out like `data`; 0 for an empty row."""
        if self.matrix is None:
            return np.asarray(terms.max(axis=1, initial=0.0))
        tops = np.zeros(self.count)
        np.maximum.at(tops, self._row_numbers(), terms)
        return tops

    def relative_to(self, bounds: Floats) -> tuple[Floats, Floats]:
        """Entries over their column's bound as `inner` times a factor per row, so that squares do not overflow."""
        bound = self.per_column(np.where(bounds > 0, bounds, 1.0))
        with np.errstate(over="ignore"):
            inner = self.data / bound
        tops = self.row_tops(np.abs(inner))
        huge = tops > _HUGE
        if not huge.any():
            return inner, np.ones(self.count)
        factors = np.where(huge, self.row_tops(np.abs(self.data)), 1.0)
        with np.errstate(over="ignore"):
            return self.data / self.spread_rows(factors) / bound, factors

    def spread_rows(self, factors: Floats) -> Floats:
        """A factor per row, laid beside `data`."""
        return factors[:, None] if self.matrix is None else factors[self._row_numbers()]

    def spread_blocks(self, factors: Floats, starts: NDArray[np.int64]) -> Floats:
        """A factor per row and block, laid beside `data`."""
        if self.matrix is None:
            sizes = np.diff(np.append(starts, self.dim))
            return np.repeat(factors, sizes, axis=1)
        block = np.searchsorted(starts, self.matrix.indices, side="right") - 1
        return np.asarray(factors[self._row_numbers(), block])

    def replaced(self, data: Floats) -> Rows:
        """The same layout with other entries."""
        return Rows(data, self.dim, self.matrix)

    def scale_rows(self, factors: Floats) -> Rows:
        """Each row times its factor."""
        return self.replaced(self.data * self.spread_rows(factors))

    def truncated(self, bounds: Floats) -> Rows:
        """Entries moved towards zero to the grid that belongs to each column's bound."""
        grid = self.per_column(grid_below(bounds))
        return self.replaced(np.trunc(self.data / grid) * grid)

    def value(self) -> Any:
        """The array, or a matrix of the kind that was read."""
        if self.matrix is None:
            return self.data
        kind = type(self.matrix)
        return kind((self.data, self.matrix.indices.copy(), self.matrix.indptr.copy()), shape=self.matrix.shape)


def owner_mask(owner: ArrayLike | None, max_rows: int | None, rows: int) -> NDArray[np.bool_] | None:
    """True for the first `max_rows` rows of each owner; None where every row is a person of its own."""
    if owner is None and max_rows is None:
        return None
    if owner is None or max_rows is None:
        raise ValueError("owner and max_rows go together: name both, or neither where a row is a person")
    limit = count("max_rows", max_rows)
    ids = np.asarray(owner)
    if ids.shape != (rows,):
        raise ValueError(f"owner must hold one id per row ({rows}), got shape {ids.shape}")
    if ids.dtype.kind not in "iuUS":
        raise TypeError(f"owner must hold integers or strings, got dtype {ids.dtype}")
    _, number = np.unique(ids, return_inverse=True)
    order = np.argsort(number, kind="stable")
    ordered = number[order]
    first = np.searchsorted(ordered, ordered, side="left")
    keep = np.empty(rows, dtype=np.bool_)
    keep[order] = np.arange(rows) - first < limit
    return keep
