"""The second moments of clipped records [x, c, y]: all that private least squares ever reads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.learn.tables import Table, without_odd
from shapedp.numerics.gram import gram_error, gram_sum
from shapedp.sensitivity import L2

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """|x|_2 <= feature, |y| <= target, and the constant put beside x for the intercept (0: no such column)."""

    feature: float
    target: float
    constant: float = 0.0

    @property
    def design(self) -> float:
        """The bound on |[x, c]|_2, rounded up."""
        return math.hypot(self.feature, self.constant) * (1 + 2.0**-50)

    @property
    def row(self) -> float:
        """The bound on |[x, c, y]|_2, rounded up."""
        return math.hypot(self.feature, self.constant, self.target) * (1 + 2.0**-50)


@dataclass(frozen=True, eq=False)
class Moments:
    """Z^T Z of records z = [x, c, y] within `bounds`; a record with a NaN or an infinity is a row of zeros.

    Guarantee: off by at most `error` in the Frobenius norm, from rounding.
    """

    gram: Floats
    records: int
    bounds: Bounds

    @property
    def design(self) -> Floats:
        """The moments of [x, c]."""
        return self.gram[:-1, :-1]

    @property
    def cross(self) -> Floats:
        """[x, c]^T y."""
        return self.gram[:-1, -1]

    @property
    def error(self) -> float:
        """A bound on the rounding, `gram_error` times the most the trace can be."""
        return gram_error(self.records) * self.records * self.bounds.row**2


def moments(table: Table, bounds: Bounds) -> Moments:
    """One pass over the table."""
    wide = table.columns + (bounds.constant > 0) + 1
    return Moments(gram_sum(clipped_blocks(table, bounds), wide), table.records, bounds)


def clipped_blocks(table: Table, bounds: Bounds) -> Iterator[Any]:
    """Blocks of rows [x, c, y], clipped."""
    ball = L2(bounds.feature, dim=table.columns)
    for x, y in table.blocks():
        features, target, kept = without_odd(x, y)
        inside = ball.clip(features, adjacency="zero-out")[0]
        dense = inside.toarray() if hasattr(inside, "toarray") else inside
        middle = [np.where(kept, bounds.constant, 0.0)] if bounds.constant > 0 else []
        yield np.column_stack([dense, *middle, np.clip(target, -bounds.target, bounds.target)])
