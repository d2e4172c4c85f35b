"""Symmetric matrices (covariances), released as their upper triangle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics.checks import count, laid_out, numeric
from shapedp.sensitivity.balls import L2
from shapedp.sensitivity.base import Adjacency

_ROOT_HALF = math.nextafter(math.sqrt(0.5), 1.0)


def symmetric(radius: float, order: int, *, adjacency: Adjacency | None = None) -> L2:
    """The upper triangles of symmetric order x order matrices of Frobenius norm at most `radius`.

    Guarantee: an entry off the diagonal stands for two, so |V|_F is the norm of the triangle with those entries
    times sqrt 2: an ellipsoid. Least-error Gaussian noise then has variance s^2 on the diagonal and s^2/2 off it,
    the isometric release, and the triangle itself is never multiplied: no rounding meets the data.

    Parameters: the bound on the Frobenius norm, the order of the matrices, and the neighbour relation.
    Returns: an ellipsoid of upper triangles.

    Example:
        >>> symmetric(1.0, 3).dim
        6
    """
    order = count("order", order)
    laid_out(order * (order + 1) // 2)
    rows, columns = np.triu_indices(order)
    return L2(radius, rows.size, scales=np.where(rows == columns, 1.0, _ROOT_HALF), adjacency=adjacency)


def upper_triangle(matrix: ArrayLike) -> NDArray[Any]:
    """The upper triangle of a symmetric matrix, row by row, diagonal included.

    Parameters: a symmetric matrix.
    Returns: a vector of n (n + 1)/2 entries.

    Example:
        >>> upper_triangle([[1, 2], [2, 3]])
        array([1, 2, 3])
    """
    array = numeric("matrix", matrix)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(f"matrix must be square and not empty, got shape {array.shape}")
    if not (array == array.T).all():
        raise ValueError("matrix must be symmetric and finite: average it with its transpose first")
    return np.asarray(array[np.triu_indices(len(array))])


def symmetric_matrix(values: ArrayLike) -> NDArray[Any]:
    """The symmetric matrix whose `upper_triangle` is `values`.

    Parameters: a vector of n (n + 1)/2 entries.
    Returns: a matrix of order n.

    Example:
        >>> symmetric_matrix([1, 2, 3])
        array([[1, 2],
               [2, 3]])
    """
    array = numeric("values", values)
    order = (math.isqrt(8 * array.size + 1) - 1) // 2
    if array.ndim != 1 or not array.size or order * (order + 1) // 2 != array.size:
        raise ValueError(f"values must be a vector of n (n + 1)/2 entries, got shape {array.shape}")
    matrix = np.empty((order, order), dtype=array.dtype)
    rows, columns = np.triu_indices(order)
    matrix[rows, columns] = array
    matrix[columns, rows] = array
    return matrix
