"""Which nodes of a grid hold mass: far from where the losses lie, few of them are enough.

The gap that a cell of length h leaves between upper and lower masses is about its mass times h^2: cells may be long
where the mass is small. Any choice of knots gives valid bounds; a good one gives tight ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from shapedp.accounting.cumulants import cumulant
from shapedp.numerics.arrays import Floats
from shapedp.privacy.losses.masses import Masses

_LEVELS = 8  # the longest cell is 2^8 steps
_LONGEST = 1 / 16  # in the loss itself
_SHARE = 0.1  # of the gap of all other cells, the most that long ones may add
_RESOLUTION = 128  # steps from 0 to the first longer cell, where all tilts are of interest
_FEW = 2048  # nodes that are few enough


def near_masses(before: Masses, tilts: Iterable[float], step: float, first: int, last: int) -> np.ndarray | None:
    """Knots for a grid between two nodes, by the masses found on a coarser one, tilted in these ways.

    A block of nodes gets cells of h = step 2^level such that h^2 times the density of the tilted mass, over the whole
    length of the grid, is a small share of step^2. None where all nodes are to be used.
    """
    levels = min(_LEVELS, math.floor(math.log2(_LONGEST / step)))
    if levels < 1 or last - first <= _FEW:
        return None
    low, edges = _edges(step, first, last, levels)
    points, logs = before.held
    left = np.maximum(np.searchsorted(points, edges[:-1]) - 1, 0)
    right = np.minimum(np.searchsorted(points, edges[1:], side="right"), points.size - 1)
    width = np.maximum(points[right] - points[left], step * 2**levels)
    density = np.full(width.size, 1e-300)
    for theta in tilts:
        with np.errstate(under="ignore"):
            total = np.append(0.0, np.cumsum(np.exp(theta * points + logs - cumulant(before, theta)[0])))
        density = np.maximum(density, (total[right + 1] - total[left]) / width)
    level = np.floor(0.5 * np.log2(_SHARE / (density * (edges[-1] - edges[0]))))
    return _joined(low, level, levels)


def for_all_tilts(before: Masses, step: float, first: int, last: int) -> np.ndarray | None:
    """Knots whose cells are short beside the losses themselves, and where much mass lies."""
    found = near_masses(before, (0.0,), step, first, last)
    if found is None:
        return None
    low, edges = _edges(step, first, last, _LEVELS)
    least = np.maximum(np.minimum(np.abs(edges[:-1]), np.abs(edges[1:])), step)
    level = np.floor(np.log2(least / (_RESOLUTION * step)))
    return np.union1d(found, _joined(low, level, _LEVELS))


def _edges(step: float, first: int, last: int, levels: int) -> tuple[int, Floats]:
    """The first of the blocks of 2^levels nodes that hold all nodes, and the ends of all of them."""
    low, high = first // 2**levels, -(-last // 2**levels)
    return low, np.asarray(step * 2**levels * np.arange(low, high + 1), dtype=np.float64)


def _joined(low: int, level: Floats, levels: int) -> np.ndarray:
    """The knots of all blocks; neighbouring blocks differ by one level at most."""
    count = np.arange(level.size)
    smooth = np.clip(level, 0, levels).astype(np.int64)
    for side in (slice(None), slice(None, None, -1)):
        smooth[side] = np.minimum.accumulate(smooth[side] - count) + count
    starts = 2**levels * (low + count)
    found = [(starts[smooth == one, None] + np.arange(0, 2**levels, 2**one)).ravel() for one in range(levels + 1)]
    return np.append(np.sort(np.concatenate(found)), 2**levels * (low + level.size))
