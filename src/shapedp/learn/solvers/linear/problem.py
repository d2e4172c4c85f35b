"""What a solver of private least squares is given, and what it hands back."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from shapedp.boundary.values import booleans
from shapedp.learn.moments import Bounds, Moments
from shapedp.numerics.arrays import Floats
from shapedp.numerics.gram import gram_error
from shapedp.sensitivity import Adjacency


def unit(bounds: Bounds) -> float:
    """The power of two that brings the bound on y near that of [x, c]; scaling by it rounds nothing."""
    return float(2.0 ** round(math.log2(bounds.design / bounds.target)))


def row_bound(bounds: Bounds) -> float:
    """The bound on a row [x, c, unit y]."""
    return math.hypot(bounds.design, unit(bounds) * bounds.target) * (1 + 2.0**-50)


@dataclass(frozen=True)
class Problem:
    """The public side of a regression: sizes, bounds and the claim. `order` counts the columns of [x, c]."""

    records: int
    order: int
    bounds: Bounds
    epsilon: float
    delta: float
    adjacency: Adjacency = "zero-out"
    sketch_rows: int | None = None

    @property
    def slip(self) -> float:
        """By what share of its bound rounding of the Gram matrix may move a block between neighbours.

        With y in units that make its bound that of [x, c], up to sqrt 2, the error of two matrices is 2 `gram_error`
        row_bound^2, and every block's bound at least half the design's squared.
        """
        error = 2 * gram_error(self.records, self.order + 1) * row_bound(self.bounds) ** 2
        return 2 * error / self.bounds.design**2 * (1 + 2.0**-44)


@dataclass(frozen=True)
class Draws:
    """Where the randomness comes from (None: secure), and whether a refuted claim is released all the same."""

    rng: np.random.Generator | None = None
    unsafe: bool = False

    def __post_init__(self) -> None:
        booleans(self)


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights of the columns [x, c], and their covariance where it can be told from what was released.

    The covariance is that of privacy noise and sampling together, at first order; the bias of shrinking is not in it.
    """

    weights: Floats
    covariance: Floats | None = None


@dataclass(frozen=True)
class Solver:
    """`mechanisms(problem)` from public quantities alone, then `solve(moments, mechanisms, draws)`."""

    mechanisms: Callable[[Problem], tuple[Any, ...]]
    solve: Callable[[Moments, tuple[Any, ...], Draws], Solution]
    adjacencies: tuple[Adjacency, ...] = ("zero-out", "replace")


def solved(matrix: Floats, target: Floats) -> Floats:
    """The solution of a symmetric system, of least norm where it is singular."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return np.asarray(linalg.solve(matrix, target, assume_a="sym", check_finite=False))
    except (linalg.LinAlgError, linalg.LinAlgWarning):
        return np.asarray(np.linalg.pinv(matrix, hermitian=True) @ target)
