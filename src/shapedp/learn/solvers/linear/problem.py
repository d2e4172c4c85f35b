"""What a solver of private least squares is given, and what it hands back."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from shapedp.learn.moments import Bounds, Moments
from shapedp.learn.solvers.base import Draws, Solution
from shapedp.learn.solvers.base import Solver as AnySolver
from shapedp.numerics.arrays import Floats
from shapedp.numerics.gram import gram_error
from shapedp.numerics.outward import ABOVE_8, ABOVE_512
from shapedp.sensitivity import Adjacency

__all__ = ["Draws", "Problem", "Solution", "Solver", "row_bound", "solved", "unit"]


def unit(bounds: Bounds, targets: int = 1) -> float:
    """The power of two that brings the bound on all targets near that of [x, c]; scaling by it rounds nothing."""
    return float(2.0 ** round(math.log2(bounds.design / (bounds.target * math.sqrt(targets)))))


def row_bound(bounds: Bounds, targets: int = 1) -> float:
    """The bound on a row [x, c, unit y_1 .. unit y_K]."""
    return math.hypot(bounds.design, unit(bounds, targets) * bounds.target * math.sqrt(targets)) * ABOVE_8


@dataclass(frozen=True)
class Problem:
    """The public side of a regression: sizes, bounds and the claim.

    Parameters
    ----------
    records: the number of records.
    order: the number of columns of [x, c].
    bounds: the bounds on the records, that of the target on each target.
    epsilon, delta, adjacency: the claim.
    targets: the number of columns of y.
    sketch_rows: the rows of a sketch; None leaves the choice to the solver.

    Examples
    --------
    >>> Problem(1000, 2, Bounds(1.0, 1.0), epsilon=1.0, delta=1e-6).adjacency
    'zero-out'
    """

    records: int
    order: int
    bounds: Bounds
    epsilon: float
    delta: float
    adjacency: Adjacency = "zero-out"
    targets: int = 1
    sketch_rows: int | None = None

    @property
    def slip(self) -> float:
        """How far rounding of the Gram matrix may move a block between neighbours, as a share of the block's bound.

        With y in units that make its bound (that of all targets together) that of [x, c], up to sqrt 2, the error of
        two matrices is 2 `gram_error` row_bound^2, and every block's bound at least half the design's squared.
        """
        width = self.order + self.targets + (self.targets > 1)  # several targets are read beside an empty one
        error = 2 * gram_error(self.records, width) * row_bound(self.bounds, self.targets) ** 2
        return 2 * error / self.bounds.design**2 * ABOVE_512


Solver = AnySolver[Problem, Moments]


def solved(matrix: Floats, target: Floats) -> Floats:
    """The solution of a symmetric system, of least norm where it is singular."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return np.asarray(linalg.solve(matrix, target, assume_a="sym", check_finite=False))
    except (linalg.LinAlgError, linalg.LinAlgWarning):
        return np.asarray(np.linalg.pinv(matrix, hermitian=True) @ target)
