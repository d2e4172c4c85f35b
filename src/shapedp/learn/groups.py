"""Counts, sums and sums of squares of records by group: what naive Bayes and k-means release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.accounting import Plan
from shapedp.accounting.plan import Step
from shapedp.learn.solvers.cd import MOST_RECORDS
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_512, ABOVE_GRID, BELOW_8192
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L2, Adjacency, Box
from shapedp.tables.sources import CHUNK

ROUNDED = ABOVE_GRID  # entries are rounded to a grid


@dataclass(frozen=True)
class GroupSums:
    """For each of `groups` groups its count, the sums of u and, with `squares`, those of u^2 - 1/2.

    u has `columns` entries in [-1, 1]. The release is repeated `times` times, at groups that may depend on what was
    released before.

    Guarantee: a record is in one group at most, so it moves one block of (1, u, u^2 - 1/2): by at most
    sqrt(1 + d (1 + 1/4)), since u^2 + (u^2 - 1/2)^2 is largest at u = 1. Exchanged, it moves two blocks by as much
    each, or one block by at most 2 sqrt d: u to u' by (u - u')^2 (1 + (u + u')^2) <= 4.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    groups: int
    columns: int
    squares: bool
    times: int = 1

    @property
    def width(self) -> int:
        """The entries of one group."""
        return 1 + self.columns * (1 + self.squares)

    @property
    def radius(self) -> float:
        """How far a record moves the sums."""
        square = 1 + self.columns * (1.25 if self.squares else 1.0)
        if self.adjacency == "replace":
            square = max(2 * square, 4.0 * self.columns)
        return math.sqrt(square) * ROUNDED

    @property
    def mechanism(self) -> Additive:
        """One release."""
        if not self.delta > 0:
            raise ValueError("delta must be > 0 for Gaussian noise")
        mu = GaussianLoss.calibrate(self.epsilon, self.delta).mu * BELOW_8192 / math.sqrt(self.times)
        one = L2(self.radius, self.groups * self.width, adjacency=self.adjacency)
        return Additive(Gaussian(self.radius / mu * ABOVE_512, one.dim), one, self.epsilon, self.delta)

    @property
    def subject(self) -> Any:
        """What is certified: the release, or the plan of its repetitions."""
        return self.mechanism if self.times == 1 else Plan((Step(self.mechanism, count=self.times),))

    def query(self, u: Floats, group: NDArray[np.int64]) -> Floats:
        """The sums, exact: every term is on a grid, and there are at most 2^23 records; a negative group is none."""
        if len(u) > MOST_RECORDS:
            raise ValueError(f"at most 2^23 records, whose sums are exact, got {len(u)}")
        bounds = np.concatenate([np.ones(1 + self.columns), np.full(self.columns * self.squares, 0.5)])
        box, total = Box(bounds), np.zeros((self.groups, self.width))
        for start in range(0, len(u), CHUNK):
            part, number = u[start : start + CHUNK], group[start : start + CHUNK]
            terms = [np.ones((len(part), 1)), part, *([part * part - 0.5] if self.squares else [])]
            clipped: Any = box.clip(np.concatenate(terms, axis=1), adjacency="zero-out")[0]
            for k in range(self.groups):
                total[k] += clipped[number == k].sum(axis=0)
        return total.ravel()

    def read(self, value: Floats) -> tuple[Floats, Floats, Floats]:
        """Counts (at least 1), means and mean squares of u by group, from what was released."""
        table = value.reshape(self.groups, self.width)
        counts = np.maximum(table[:, 0], 1.0)
        means = np.clip(table[:, 1 : 1 + self.columns] / counts[:, None], -1.0, 1.0)
        squares = np.clip(table[:, 1 + self.columns :] / counts[:, None] + 0.5, 0.0, 1.0)
        return counts, means, squares
