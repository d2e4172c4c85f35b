"""Gram matrices by blocks of rows, and factors of them, with bounds on their rounding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLOCK = 512
_U = 2.0**-53


def gram(x: Any) -> Floats:
    """x^T x of a dense or sparse (n, d) array; see `gram_sum`."""
    return gram_sum([x], x.shape[1])


def gram_sum(parts: Iterable[Any], d: int) -> Floats:
    """The sum of x^T x over dense or sparse (n, d) arrays, each of a multiple of 512 rows but for the last.

    Guarantee: the error is at most `gram_error(n)` times the sum of the rows' squared norms, in the Frobenius norm:
    products of 512 rows err by 513 units of sum |x_i| |x_j| (Higham 2002, section 3.5, any order of summation), and
    the blocks are added in twice the working precision (Knuth's two-sum).
    """
    total, carry, product, added, virtual = (np.zeros((d, d)) for _ in range(5))
    for x in parts:
        for start in range(0, x.shape[0], BLOCK):
            part = x[start : start + BLOCK]
            dense = np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), dtype=np.float64)
            np.matmul(dense.T, dense, out=product)
            np.add(total, product, out=added)
            np.subtract(added, total, out=virtual)
            np.subtract(product, virtual, out=product)
            np.subtract(added, virtual, out=virtual)
            np.subtract(total, virtual, out=virtual)
            carry += virtual
            carry += product
            total, added = added, total
    total += carry
    return np.asarray((total + total.T) / 2)


def gram_error(n: int) -> float:
    """The relative error of `gram`, in units of the trace."""
    return (min(n, BLOCK) + 8) * _U * (1 + n * 2.0**-50)


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
    return (d + 8) * _U * (1 + d * 2.0**-50)


def least_eigenvalue(matrix: Floats) -> float:
    """The smallest eigenvalue of a positive semidefinite matrix, at least 0."""
    from scipy import linalg

    return max(float(linalg.eigvalsh(matrix, check_finite=False, subset_by_index=[0, 0])[0]), 0.0)


def eigenvalue_error(d: int) -> float:
    """The relative error allowed for `least_eigenvalue`, in units of the trace: 32 d units.

    LAPACK's bound is p(d) units of the norm with a modest p; what is seen stays below d units (tested).
    """
    return 32 * d * _U
