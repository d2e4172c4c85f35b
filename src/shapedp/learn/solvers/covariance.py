"""Releases of X^T X: isometric, with one scale for all entries, or with entries of each record clipped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import finite, one_of
from shapedp.sensitivity import L1, L2, Adjacency, Box, Sensitivity
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix, upper_triangle

Floats = NDArray[np.float64]
RELEASES = ("isometric", "iid", "clipped")
FAMILIES = ("gaussian", "laplace")
UP = 1 + 2.0**-48
_BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class SecondMoments:
    """How the upper triangle of X^T X is released, for rows with |x|_2 <= bound.

    "isometric" measures the triangle by the Frobenius norm of the matrix it stands for: entries off the diagonal get
    half the variance. "iid" gives all entries of the triangle one scale. "clipped" clips the entries of each x x^T to
    bound^2/sqrt(K) on the diagonal and bound^2/sqrt(2 K) off it, K = d (d + 1)/2, and shapes the noise to that box.

    Guarantee: |x x^T|_F = |x|^2 <= bound^2, and for a replaced row |x x^T - z z^T|_F <= sqrt(2) bound^2; the rounding
    of a Gram matrix is added. Clipped entries of up to 2^23 records add up exactly.
    Reference: Dwork, Talwar, Thakurta and Zhang 2014 (Gaussian, "iid"); i.n.i.d. noise paper, section VI.B.
    """

    columns: int
    bound: float
    adjacency: Adjacency
    release: str = "isometric"
    family: str = "gaussian"
    rounding: float = 0.0  # of the computed X^T X, in the Frobenius norm

    def __post_init__(self) -> None:
        one_of("release", self.release, RELEASES)
        one_of("noise", self.family, FAMILIES)

    @property
    def entries(self) -> int:
        """K, the entries of the triangle."""
        return self.columns * (self.columns + 1) // 2

    @property
    def profile(self) -> Floats:
        """The clips of the triangle's entries under "clipped"."""
        rows, columns = np.triu_indices(self.columns)
        top = self.bound**2 / math.sqrt(self.entries)
        return np.where(rows == columns, top, top * math.sqrt(0.5))

    def sensitivity(self) -> Sensitivity:
        """What one record can change."""
        twice = self.adjacency == "replace"
        if self.release == "clipped":
            return Box(self.profile * (2.0 if twice else 1.0), adjacency=self.adjacency)
        rounding = 2 * self.rounding
        radius = (self.bound**2 * (math.sqrt(2.0) if twice else 1.0) + rounding) * UP
        if self.release == "isometric":
            return symmetric(radius, self.columns, adjacency=self.adjacency)
        if self.family == "gaussian":
            return L2(radius, self.entries, adjacency=self.adjacency)
        widest = (self.columns + 1) / 2 * (2.0 if twice else 1.0)  # sum over i <= j of |x_i x_j| <= (|x|_1^2 + |x|^2)/2
        spread = rounding * math.sqrt(self.entries)
        return L1((self.bound**2 * widest + spread) * UP, self.entries, adjacency=self.adjacency)

    def clipped(self, blocks: Iterable[Any]) -> Floats:
        """The triangle of the sum of clipped x x^T over blocks of rows."""
        box, total = Box(self.profile), np.zeros(self.entries)
        first, second = np.triu_indices(self.columns)
        size = max(_BLOCK_ENTRIES // self.entries, 1)
        for block in blocks:
            for start in range(0, len(block), size):
                part = block[start : start + size]
                total += box.clip(part[:, first] * part[:, second], adjacency=self.adjacency)[0].sum(axis=0)
        return total


def triangle(matrix: Floats) -> Floats:
    """The entries that are released."""
    return np.asarray(upper_triangle(matrix))


def matrix(values: Floats) -> Floats:
    """The symmetric matrix that released entries stand for."""
    return np.asarray(symmetric_matrix(values))


def principal(covariance: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues from the largest down, and eigenvectors in rows, each with its largest entry positive."""
    values, vectors = np.linalg.eigh(covariance)
    rows = vectors[:, ::-1].T
    largest = np.abs(rows).argmax(axis=1)
    return values[::-1].copy(), rows * np.where(rows[np.arange(len(rows)), largest] < 0, -1.0, 1.0)[:, None]


def subspace_error(estimated: Any, true: Any) -> float:
    """|(I - U' U'^T) U|_F/|U|_F for bases U' (estimated) and U (true), orthonormal rows: 0 where one holds the other.

    Reference: i.n.i.d. noise paper, section VI.B (SRE).
    """
    found, basis = (np.atleast_2d(finite(name, rows)) for name, rows in (("estimated", estimated), ("true", true)))
    if found.shape[1] != basis.shape[1]:
        raise ValueError(f"both bases must have as many columns, got {found.shape[1]} and {basis.shape[1]}")
    for name, rows in (("estimated", found), ("true", basis)):
        if not np.allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-6):
            raise ValueError(f"the rows of {name} must be orthonormal")
    left = basis - basis @ found.T @ found
    return float(np.linalg.norm(left) / np.linalg.norm(basis))
