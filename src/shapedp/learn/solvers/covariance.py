"""Releases of X^T X: isometric, with one scale for all entries, or with entries of each record clipped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shapedp.learn.moments import Bounds, Reading
from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.mechanisms import Additive, calibrate
from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import finite, one_of
from shapedp.numerics.outward import ABOVE_32, BELOW_8192
from shapedp.sensitivity import L1, L2, Adjacency, Box, Sensitivity
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix, upper_triangle
from shapedp.tables.blocks import Table, finite_records

RELEASES = ("isometric", "iid", "clipped")
FAMILIES = ("gaussian", "laplace")
_SPENT = BELOW_8192
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
        radius = (self.bound**2 * (math.sqrt(2.0) if twice else 1.0) + rounding) * ABOVE_32
        if self.release == "isometric":
            return symmetric(radius, self.columns, adjacency=self.adjacency)
        if self.family == "gaussian":
            return L2(radius, self.entries, adjacency=self.adjacency)
        widest = (self.columns + 1) / 2 * (2.0 if twice else 1.0)  # sum over i <= j of |x_i x_j| <= (|x|_1^2 + |x|^2)/2
        spread = rounding * math.sqrt(self.entries)
        return L1((self.bound**2 * widest + spread) * ABOVE_32, self.entries, adjacency=self.adjacency)

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


@dataclass(frozen=True)
class Problem:
    """The public side of a covariance: what is released of X^T X, of how many records, and under which claim.

    `share` of the claim is spent on the mean, of mu^2 or, under Laplace noise, of epsilon; 0: rows are not centered.
    """

    moments: SecondMoments
    bounds: Bounds
    records: int
    epsilon: float
    delta: float
    share: float

    def sums(self) -> L2:
        """What one record can change in the sum of rows: its bound, twice that if replaced; and the rounding."""
        twice = 2.0 if self.moments.adjacency == "replace" else 1.0
        radius = self.bounds.feature * twice + 2 * self.moments.rounding / self.bounds.constant
        return L2(radius * ABOVE_32, self.moments.columns, adjacency=self.moments.adjacency)

    def mechanism(self, sensitivity: Sensitivity, share: float) -> Additive:
        """The least-error mechanism that spends a share of the claim."""
        if self.moments.family == "laplace":
            return calibrate("laplace", sensitivity, epsilon=self.epsilon * share * _SPENT, delta=0.0)
        whole = calibrate("gaussian", sensitivity, epsilon=self.epsilon, delta=self.delta)
        if share == 1:
            return whole
        scales = whole.law.scales / math.sqrt(share) / _SPENT
        law = Gaussian(scales) if scales.size > 1 else Gaussian(float(scales[0]), sensitivity.dim)
        return Additive(law, sensitivity, self.epsilon, self.delta)


@dataclass(frozen=True, eq=False)
class Covariance(Solution):
    """`weights` is the released covariance, beside it the released mean."""

    mean: Floats = field(kw_only=True)


def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """One release of the second moments and, where rows are centered, one of the sum."""
    squares = problem.mechanism(problem.moments.sensitivity(), 1 - problem.share)
    return (squares, problem.mechanism(problem.sums(), problem.share)) if problem.share else (squares,)


def solve(data: tuple[Problem, Reading], mechanisms: tuple[Any, ...], draws: Draws) -> Covariance:
    """Second moments less the square of the mean."""
    problem, reading = data
    moments, records, constant = problem.moments, problem.records, problem.bounds.constant
    columns = moments.columns
    squares = (
        moments.clipped(clipped_rows(reading.table, moments.bound))
        if moments.release == "clipped"
        else upper_triangle(reading.moments.gram[:columns, :columns])
    )
    released, mean = symmetric_matrix(draws.release(mechanisms[0], squares)) / records, np.zeros(columns)
    if problem.share:
        mean = draws.release(mechanisms[1], reading.moments.gram[:columns, columns] / constant) / records
    return Covariance(released - np.outer(mean, mean), mean=mean)


COVARIANCE: Solver[Problem, tuple[Problem, Reading]] = Solver(mechanisms, solve)


def clipped_rows(table: Table, bound: float) -> Iterator[Floats]:
    """Dense blocks of rows within the bound; rows that are not finite are zeros."""
    ball = L2(bound, dim=table.columns)
    for x, y in table.blocks():
        inside: Any = ball.clip(finite_records(x, y)[0], adjacency="zero-out")[0]
        yield inside.toarray() if hasattr(inside, "toarray") else inside


def principal(covariance: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues from the largest down, and eigenvectors in rows, each with its largest entry positive."""
    values, vectors = np.linalg.eigh(covariance)
    rows = vectors[:, ::-1].T
    largest = np.abs(rows).argmax(axis=1)
    return values[::-1].copy(), rows * np.where(rows[np.arange(len(rows)), largest] < 0, -1.0, 1.0)[:, None]


def subspace_error(estimated: Any, true: Any) -> float:
    """How much of a true subspace an estimated one misses: |(I - U' U'^T) U|_F/|U|_F.

    Parameters
    ----------
    estimated, true: bases U' and U, orthonormal rows of equal length.

    Returns
    -------
    A number from 0 (the estimated subspace holds the true one) to 1 (they are orthogonal).

    Reference: i.n.i.d. noise paper, section VI.B (SRE).

    Examples
    --------
    >>> subspace_error([[1.0, 0.0]], [[0.0, 1.0]])
    1.0
    """
    found, basis = (np.atleast_2d(finite(name, rows)) for name, rows in (("estimated", estimated), ("true", true)))
    if found.shape[1] != basis.shape[1]:
        raise ValueError(f"both bases must have as many columns, got {found.shape[1]} and {basis.shape[1]}")
    if not len(basis):
        raise ValueError("true must hold at least one row: nothing else can be missed")
    for name, rows in (("estimated", found), ("true", basis)):
        if not np.allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-6):
            raise ValueError(f"the rows of {name} must be orthonormal")
    left = basis - basis @ found.T @ found
    return float(np.linalg.norm(left) / np.linalg.norm(basis))
