"""Gram matrices by blocks of rows, and factors of them, with bounds on their rounding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.arrays import Floats, dots
from shapedp.numerics.outward import ABOVE_WIDE, ROUNDINGS_8, ROUNDINGS_64, ROUNDINGS_128, UNIT

Integers = NDArray[np.int64]

BLOCK = 1024  # rows of one matrix product
GROUP = 4  # products added in floating point before they are rounded to the grid
_LOW = 32
_EVERY = 4  # groups between carries
_STRAY = 64  # groups beyond one per 64 rows that `gram_error` allows for


class Columns(NamedTuple):
    """Rows [wide, beside^T] kept apart, so that many columns that lie in memory already need no copy.

    `square` is `square_of(wide)` where it is known.
    """

    wide: Floats
    beside: Floats
    square: Floats | None = None


def square_of(rows: Floats, out: Floats | None = None) -> Floats:
    """rows^T rows: both factors lie in one place, and numpy asks BLAS for one triangle and mirrors it."""
    return np.matmul(rows.T, rows, out=out)


class GramSum:
    """The sum of x^T x over groups of rows with |x_j| at most bounds_j, in integers.

    `last`: only so many rows of the matrix, the last ones, are wanted; groups are then `Columns` with so many beside.

    Guarantee: entry i, j of each group's product is rounded once, to a grid of at most 2^-46 bounds_i bounds_j that is
    set by the bounds alone; what is added up is exact. So the result is the same in any order of the groups:
    threads, workers, a group computed again. The last rows have the bits they have in the whole matrix. Holds up to
    2^37 rows.
    """

    def __init__(self, bounds: Floats, last: int | None = None) -> None:
        exponent = np.frexp(bounds)[1]
        wanted = exponent if last is None else exponent[-last:]
        self._grid = np.ldexp(1.0, exponent + wanted[:, None] + (12 - 60))
        self._high, self._low, self._whole = (np.zeros(self._grid.shape, dtype=np.int64) for _ in range(3))
        self._inverse, self._product, self._sum = 1 / self._grid, np.empty_like(self._grid), np.empty_like(self._grid)
        self._pending = 0

    def add(self, group: Iterable[Floats | Columns]) -> None:
        """Add the Gram matrix of at most 4 blocks of at most 1024 rows each."""
        self._sum.fill(0.0)
        for rows in group:
            if isinstance(rows, Columns):
                _add(rows, self._sum, self._product)
            else:
                self._sum += square_of(rows, self._product)
        np.multiply(self._sum, self._inverse, out=self._sum)
        np.rint(self._sum, out=self._sum)
        np.copyto(self._whole, self._sum, casting="unsafe")
        self._low += self._whole
        self._pending += 1
        if self._pending == _EVERY:
            self._carry()

    def merge(self, other: GramSum) -> Self:
        """Add what another sum of the same kind holds."""
        if not np.array_equal(self._grid, other._grid):
            raise ValueError("only sums with the same bounds can be merged")
        for part in (self, other):
            part._carry()
        self._high += other._high
        self._low += other._low
        self._carry()
        return self

    def value(self) -> Floats:
        """The sum, symmetric, from its lower triangle, or its last rows: entries within 2 units in the last place."""
        self._carry()
        total = (self._high.astype(np.float64) * 2.0**_LOW + self._low) * self._grid
        if len(total) < total.shape[1]:
            return np.asarray(total)
        total = np.tril(total)
        return np.asarray(total + np.tril(total, -1).T)

    def __getstate__(self) -> dict[str, Any]:
        """Integer matrices and their grid: what a worker sends."""
        self._carry()
        return {"grid": self._grid, "high": self._high, "low": self._low}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._grid, self._pending = state["grid"], 0
        self._high, self._low = (np.array(state[name]) for name in ("high", "low"))
        self._inverse, self._whole = 1 / self._grid, np.empty_like(self._low)
        self._product, self._sum = np.empty_like(self._grid), np.empty_like(self._grid)

    def _carry(self) -> None:
        """Keep the low word within [0, 2^32): the same sum always has the same words."""
        self._high += self._low >> _LOW
        self._low &= 2**_LOW - 1
        self._pending = 0


def _add(rows: Columns, total: Floats, scratch: Floats) -> None:
    """Add rows^T rows to the lower triangle of a matrix, or to its last rows; what is above is left undefined.

    The few columns beside are multiplied one by one: for a product of two matrices BLAS would copy the wide ones.
    """
    wide, beside, square = rows
    width, lower = wide.shape[1], total[-len(beside) :]
    if len(total) > len(beside):
        total[:width, :width] += square_of(wide, scratch[:width, :width]) if square is None else square
    for row, column in zip(lower, beside, strict=True):
        row[:width] += column @ wide
    lower[:, width:] += dots(beside[:, None], beside[None])


def gram(x: Any) -> Floats:
    """x^T x of a dense or sparse (n, d) array; see `gram_sum`."""
    rows = x.tocsr() if hasattr(x, "tocsr") else np.asarray(x, dtype=np.float64)
    tallest = abs(rows).max(axis=0)
    return gram_sum([rows], np.ravel(tallest.toarray() if hasattr(tallest, "toarray") else tallest))


def gram_sum(parts: Iterable[Any], bounds: Floats) -> Floats:
    """The sum of x^T x over dense or sparse (n, d) arrays with bounded columns.

    Guarantee: see `gram_error`. The parts but for the last have a multiple of 4096 rows.
    """
    total = GramSum(bounds)
    for x in parts:
        for start in range(0, x.shape[0], GROUP * BLOCK):
            total.add(_dense(x[at : at + BLOCK]) for at in range(start, min(start + GROUP * BLOCK, x.shape[0]), BLOCK))
    return total.value()


def _dense(rows: Any) -> Floats:
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), dtype=np.float64)


def gram_error(n: int, d: int) -> float:
    """A bound on the error of a `GramSum` in the Frobenius norm, in units of the squared bound on the rows.

    Products of m <= 1024 rows err by m + 1 units of sum |x_i| |x_j| (Higham 2002, section 3.5, any order of summation),
    adding up to 4 of them by 3, the result by 2, each group's rounding to the grid by d 2^-47; n/64 + 64 groups are
    allowed for. Columns may be scaled by powers of two afterwards, and the bound with them.
    """
    return (n * (min(n, BLOCK) + 8 + d) * UNIT + _STRAY * d * ROUNDINGS_64) * ABOVE_WIDE


def block_error(n: int, d: int) -> float:
    """By how much the sums of neighbours miss their one row's x x^T, in the same units.

    One block of each rounds otherwise, as do 3 additions to it, its group's rounding to the grid, and the result.
    """
    block, group = min(n, BLOCK), min(n, GROUP * BLOCK)
    return 2 * ((block + 1) * block + 3 * group) * UNIT + d * ROUNDINGS_128 + 4 * n * UNIT


def factor(covariance: Floats) -> Floats:
    """R with R^T R = covariance: Cholesky; where that fails, from eigenvalues with negative ones set to 0.

    Guarantee: |R^T R - covariance|_F <= `factor_error(d)` times the trace where Cholesky succeeds, as it does if
    that is below half the least eigenvalue. Reference: Higham 2002, Theorems 10.3 and 10.7.
    """
    from scipy import linalg

    try:
        return np.asarray(linalg.cholesky(covariance, lower=False, check_finite=False))
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(covariance, check_finite=False)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)


def factor_error(d: int) -> float:
    """The relative backward error of `factor`, in units of the trace."""
    return (d + 8) * UNIT * (1 + d * ROUNDINGS_8)


def least_eigenvalue(matrix: Floats) -> float:
    """The smallest eigenvalue of a positive semidefinite matrix, at least 0.

    LAPACK's value where Cholesky factorisations on both sides of it confirm it, otherwise by bisection with them.
    Guarantee: off by at most `eigenvalue_error(d)` times the trace. A factorisation of A - s I that succeeds shows
    lambda >= s - (d + 8) u trace, one that fails lambda <= s + 1.01 d (d + 1) u trace (Higham 2002, Theorem 10.7).
    """
    from scipy import linalg

    trace = float(np.trace(matrix))
    near = eigenvalue_error(len(matrix)) / 2 * trace
    found = max(float(linalg.eigvalsh(matrix, check_finite=False, subset_by_index=[0, 0])[0]), 0.0)
    if (found <= near or _definite(matrix, found - near)) and not _definite(matrix, found + near):
        return found
    low, high = 0.0, trace
    while high - low > near:
        middle = (low + high) / 2
        low, high = (middle, high) if _definite(matrix, middle) else (low, middle)
    return low


def _definite(matrix: Floats, shift: float) -> bool:
    """Whether the Cholesky factorisation of matrix - shift I succeeds."""
    from scipy import linalg

    try:
        linalg.cholesky(matrix - shift * np.eye(len(matrix)), lower=False, check_finite=False)
    except linalg.LinAlgError:
        return False
    return True


def eigenvalue_error(d: int) -> float:
    """The error of `least_eigenvalue`, in units of the trace."""
    return (2.1 * d * (d + 1) + 64 * d) * UNIT
