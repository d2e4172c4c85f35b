"""Several targets beside the same columns: one release of X^T X, X^T Y and the squares of Y serves all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shapedp.learn.moments import Bounds, moments
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, row_bound, unit
from shapedp.learn.solvers.linear.problem import Solver as LinearSolver
from shapedp.learn.solvers.linear.suffstats import NoisyMoments, covariance, mechanisms, shrunk
from shapedp.learn.weights import scaled
from shapedp.numerics.arrays import Floats
from shapedp.sensitivity.symmetric import symmetric_matrix, upper_triangle
from shapedp.tables.blocks import InMemory


@dataclass(frozen=True, eq=False)
class Targets:
    """Records within their bounds: rows [x, c] and targets in units of their bounds, each within [-1, 1]."""

    rows: Floats
    shares: Floats
    bounds: Bounds

    @classmethod
    def of(cls, rows: Floats, targets: Floats, ends: Floats, bounds: Bounds, factor: Floats) -> Targets:
        """From rows x, targets (n, K), a bound for each target and the factor of each record (`weights.factors`).

        Guarantee: a row follows from its record alone; one that is not finite anywhere is NaN, which counts as none.
        """
        finite = np.all(np.isfinite(rows), axis=1) & np.all(np.isfinite(targets), axis=1)
        with np.errstate(all="ignore"):
            shares = np.where(np.reshape(finite, (-1, 1)), np.clip(targets / ends, -1.0, 1.0) * factor[:, None], np.nan)
        return cls(scaled(rows, bounds, factor), shares, replace(bounds, target=1.0))

    def moments(self) -> tuple[Floats, Floats, Floats]:
        """X^T X, X^T Y and the squares of the columns of Y, by one pass over the rows [x, c, Y].

        Y is brought near the size of [x, c] by a power of two, so that `Problem.slip` bounds the rounding.
        """
        width, count = self.rows.shape[1], self.shares.shape[1]
        near = unit(self.bounds, count)
        table = InMemory(np.hstack([self.rows, near * self.shares]), np.zeros(len(self.rows)))
        gram = moments(table, Bounds(row_bound(self.bounds, count), 0.0)).gram[:-1, :-1]
        return gram[:width, :width], gram[:width, width:] / near, np.diag(gram)[width:] / near**2


def problem(data: Targets, claim: tuple[Any, ...]) -> Problem:
    """The public side."""
    records, order = data.rows.shape
    epsilon, delta, adjacency = claim
    return Problem(records, order, data.bounds, epsilon, delta, adjacency, targets=data.shares.shape[1])


def solve(data: Targets, mechanisms: tuple[Any, ...], draws: Draws) -> tuple[Solution, ...]:
    """Release once, then shrink for each target; weights are in units of the targets' bounds."""
    (mechanism,) = mechanisms
    design, cross, squares = data.moments()
    order, count = cross.shape
    corner = order * (order + 1) // 2
    value = draws.release(mechanism, np.concatenate([upper_triangle(design), cross.T.reshape(-1), squares]))
    scales = mechanism.law.marginal_scales()
    released = symmetric_matrix(value[:corner]), value[corner:-count].reshape(count, order), value[-count:]
    noisy = partial(NoisyMoments, released[0], design_scale=float(scales[0]), cross_scale=float(scales[corner]))
    solutions = []
    for sums, square in zip(*released[1:], strict=True):
        one = noisy(cross=sums)
        found = shrunk(one)
        residual = max(float(square) + found.risk, 0.0) / len(data.rows)
        solutions.append(Solution(found.weights, covariance(one, found, residual)))
    return tuple(solutions)


SEVERAL: LinearSolver = LinearSolver(mechanisms, solve)  # type: ignore[arg-type]
