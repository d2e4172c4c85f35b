"""Laws of sums of independent numbers >= 0, between two laws on few points.

Upper: a point between two nodes of a grid is split over both so that its mean stays; lower: all points of a cell move
to their mean. The first law is larger, the second smaller in convex order, and so are sums of independent ones: for
every k the means of (S - k)_+ and of (k - S)_+ are bounded. The grid has any shape; ours has its nodes where these two
means change by equal amounts on a normal scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_16, UNIT

_COARSE = 192  # points of each summand from which a grid is chosen
_BLOCK = 2**17  # sums at a time
_FAR, _NEAR = 9.3, 5.5  # the ends of a grid on a normal scale, where it is asked (e^(-9.3^2/2) = 2e-19) and elsewhere
_STEEP = 4.0  # from here on nodes are as far apart as w falls
_FAINT, _LOST = 1e-290, 1e-312  # masses that mean something; what products below the normal range may lose in all


@dataclass(frozen=True, eq=False)
class Points:
    """Masses at ascending points >= 0; `beyond` is a mean that sits at infinity, without mass.

    The law meant has masses within a factor 1 +- `slack` and points within a factor 1 +- `move` of these.
    """

    at: Floats
    masses: Floats
    beyond: float = 0.0
    slack: float = 0.0
    move: float = 0.0

    def plus(self, other: Points, nodes: int, *, upper: bool, falling: bool = False) -> Points:
        """The sum of this and an independent other one, on about `nodes` points, as an upper or a lower law.

        `falling`: it will be asked for means of (k - S)_+, not of (S - k)_+; that decides where points are dense.
        """
        grid = _grid(self, other, nodes, falling)
        both = _split(self, other, grid) if upper else _merged(self, other, grid, falling)
        beyond = self.beyond * float(other.masses.sum()) + other.beyond * float(self.masses.sum()) + both.beyond
        rounded = UNIT * (2 * _BLOCK + self.at.size * other.at.size / _BLOCK + 32)
        slack = (self.slack + other.slack + rounded) * (1 + 2 * (self.slack + other.slack + rounded))
        move = max(self.move, other.move) + (UNIT * 4 if upper else 2 * rounded)
        return replace(both, beyond=beyond, slack=slack, move=move)

    def times(self, count: int, nodes: int, *, upper: bool, falling: bool = False) -> Points:
        """The sum of `count` independent ones, by doubling; `falling` as in `plus`."""
        nothing = Points(np.zeros(1), np.ones(1))
        one = self.plus(nothing, nodes, upper=upper, falling=falling) if self.at.size > nodes else self
        total = one
        for bit in bin(count)[3:]:
            total = total.plus(total, nodes, upper=upper, falling=falling)
            if bit == "1":
                total = total.plus(one, nodes, upper=upper, falling=falling)
        return total

    def above(self, k: Floats, *, upper: bool) -> Floats:
        """The mean of (S - k)_+, rounded up or down."""
        k = k * (1 - self.move - ROUNDINGS_16) if upper else k * (1 + self.move + ROUNDINGS_16)
        mass, rest = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0), np.zeros(self.at.size + 1)
        rest[:-2] = np.cumsum((np.diff(self.at) * mass[1:-1])[::-1])[::-1]
        index = np.searchsorted(self.at, k, side="right")
        nearest = np.append(self.at, 0.0)[index]
        return self._outward(rest[index] + np.maximum(nearest - k, 0.0) * mass[index] + self.beyond, upper=upper)

    def below(self, k: Floats, *, upper: bool) -> Floats:
        """The mean of (k - S)_+, rounded up or down."""
        k = k * (1 + self.move + ROUNDINGS_16) if upper else k * (1 - self.move - ROUNDINGS_16)
        mass, rest = np.append(0.0, np.cumsum(self.masses)), np.zeros(self.at.size + 1)
        rest[2:] = np.cumsum(np.diff(self.at) * mass[1:-1])
        index = np.searchsorted(self.at, k, side="left")
        nearest = np.append(0.0, self.at)[index]
        return self._outward(rest[index] + np.maximum(k - nearest, 0.0) * mass[index], upper=upper)

    def _outward(self, value: Floats, *, upper: bool) -> Floats:
        off = (self.slack + self.move + UNIT * (4 * self.at.size + 32)) * (1.01 if upper else 1.0)
        return value * (1 + 2 * off) if upper else np.maximum(value * (1 - 2 * off), 0.0)


def _blocks(one: Points, two: Points) -> list[tuple[slice, slice]]:
    """Rows and columns that hold every pair of points; of a sum with itself every pair once, or in a square."""
    columns = max(two.at.size, 1)
    rows = max(_BLOCK // columns, 1)
    starts = range(0, one.at.size, rows)
    return [(slice(i, min(i + rows, one.at.size)), slice(i if one is two else 0, columns)) for i in starts]


def _pairs(one: Points, two: Points, block: tuple[slice, slice]) -> tuple[Floats, Floats]:
    """Sums of the points of a block and the products of their masses."""
    rows, columns = block
    sums = one.at[rows, None] + two.at[None, columns]
    masses = one.masses[rows, None] * two.masses[None, columns]
    if one is two:
        masses[:, rows.stop - columns.start :] *= 2.0
    return sums.ravel(), masses.ravel()


def _split(one: Points, two: Points, grid: Floats) -> Points:
    """Every sum on the two nodes beside it; beyond the last node its mean goes to infinity, as what underflows may."""
    last, beyond = grid.size - 1, _LOST * float(one.at[-1] + two.at[-1])
    inverse, total = 1 / np.diff(grid), np.zeros(grid.size + 1)
    total[0] = _LOST
    for block in _blocks(one, two):
        sums, masses = _pairs(one, two, block)
        cell = np.searchsorted(grid, sums, side="right") - 1
        out = cell == last
        if out.any():
            beyond += float(masses[out] @ (sums[out] - grid[-1]))
            total[last] += masses[out].sum()
            sums, masses, cell = sums[~out], masses[~out], cell[~out]
        share = inverse[cell]
        total += np.bincount(cell + 1, masses * (share * (sums - grid[cell])), grid.size + 1)
        total += np.bincount(cell, masses * (share * (grid[cell + 1] - sums)), grid.size + 1)
    kept = total[:-1] > 0
    return Points(grid[kept], total[:-1][kept], beyond)


def _merged(one: Points, two: Points, grid: Floats, falling: bool) -> Points:
    """All sums between two nodes on their mean."""
    mass, moment = np.zeros(grid.size), np.zeros(grid.size)
    for block in _blocks(one, two):
        sums, masses = _pairs(one, two, block)
        masses[masses < _FAINT] = 0.0  # to leave them out lowers both means; rounded, they may move others
        cell = np.searchsorted(grid, sums, side="right") - 1
        mass += np.bincount(cell, masses, grid.size)
        moment += np.bincount(cell, masses * sums, grid.size)
    kept = mass > 0
    if not kept.any():  # all of it was too faint: from below nothing is known
        return Points(np.zeros(1), np.zeros(1))
    mean = (moment[kept] + (_LOST if falling else 0.0)) / mass[kept]
    return Points(np.maximum.accumulate(mean), mass[kept])


def _coarse(law: Points) -> Points:
    """About `_COARSE` points, neighbours merged."""
    starts = np.arange(0, law.at.size, -(-law.at.size // _COARSE))
    mass = np.add.reduceat(law.masses, starts)
    at = np.add.reduceat(law.masses * law.at, starts) / np.maximum(mass, 1e-300)
    return Points(np.where(mass > 1e-300, at, law.at[starts]), mass)


def _grid(one: Points, two: Points, nodes: int, falling: bool) -> Floats:
    """Nodes from 0 on, at equal distances of z = sqrt(-2 log w), from `_STEEP` on of z^2.

    w is the smaller of the means of (S - k)_+ and (k - S)_+; `falling` says which of the two is asked for far out.
    """
    few = (one, two) if two.at.size == 1 else (_coarse(one), _coarse(two))
    sums = (few[0].at[:, None] + few[1].at[None, :]).ravel()
    order = np.argsort(sums)
    at, masses = sums[order], (few[0].masses[:, None] * few[1].masses[None, :]).ravel()[order]
    right, left = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0), np.cumsum(masses)
    call = np.append(np.cumsum((np.diff(at) * right[:-1])[::-1])[::-1], 0.0)
    put = np.append(0.0, np.cumsum(np.diff(at) * left[:-1]))
    with np.errstate(divide="ignore"):
        depth = -np.log(np.minimum(call, put))
    if not np.isfinite(depth).any():  # a law on one point
        return np.unique(np.append(0.0, at[np.linspace(0, at.size - 1, nodes).astype(np.int64)]))
    z = np.minimum(np.sqrt(2 * np.maximum(depth - depth.min(), 0.0)), 2 * _FAR)
    z = np.where(z > _STEEP, (z**2 + _STEEP**2) / (2 * _STEEP), z)
    scale = np.maximum.accumulate(np.where(put < call, -z, z))
    far, near = (_FAR**2 + _STEEP**2) / (2 * _STEEP), _NEAR
    low, high = (far, near) if falling else (near, far)
    wanted = np.linspace(max(float(scale[0]), -low), min(float(scale[-1]), high), nodes)
    return np.unique(np.append(0.0, np.interp(wanted, scale, at)))
