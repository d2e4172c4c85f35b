"""The parts of a strategy: blocks of turned tables, in families that share their special attributes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.noise.rotation import Mode
from shapedp.numerics.arrays import Floats, frozen, frozen_integers

Block = tuple[int, ...]
Tables = Mapping[tuple[int, ...], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Part:
    """Special attributes whose cells are turned together; `values` says that the count and the measures are, too."""

    axes: tuple[int, ...]
    values: bool
    modes: tuple[Mode, ...]

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.modes[0].size


@dataclass(frozen=True, eq=False)
class Family:
    """Blocks that share their special attributes: the plain attributes of each, its scale and its modes."""

    parts: tuple[Part, ...]
    blocks: tuple[Block, ...]
    sigma: Floats
    mode: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, keep in (("parts", tuple), ("blocks", tuple), ("sigma", frozen), ("mode", frozen_integers)):
            object.__setattr__(self, name, keep(getattr(self, name)))

    @cached_property
    def index(self) -> dict[Block, int]:
        """Where each block stands."""
        return {block: place for place, block in enumerate(self.blocks)}

    @property
    def axes(self) -> tuple[int, ...]:
        """The special attributes."""
        return tuple(axis for part in self.parts for axis in part.axes)

    def modes_of(self, block: int) -> list[Mode]:
        """One mode per part."""
        return [part.modes[min(int(self.mode[block]), len(part.modes) - 1)] for part in self.parts]


@dataclass(frozen=True, eq=False)
class Strategy:
    """Families of blocks at mu = 1 or so, and a proved lower bound on the weighted error of any Gaussian at mu = 1."""

    families: tuple[Family, ...]
    least: float


def contrasted(table: NDArray[Any], axis: int) -> NDArray[Any]:
    """x_1 + ... + x_k - k x_(k+1), k = 1 ... n - 1, along one axis: Helmert's contrasts, whole where the table is."""
    rows = np.moveaxis(table, axis, 0)
    return np.moveaxis(np.cumsum(rows[:-1], axis=0) - _numbers(rows)[1:] * rows[1:], 0, axis)


def contrast_lengths(size: int) -> Floats:
    """sqrt(k (k + 1)), k = 1 ... n - 1: contrasts over them are rows of an orthonormal matrix."""
    number = np.arange(1.0, size)
    return np.sqrt(number * (number + 1))


def restored(contrasts: Floats, axis: int) -> Floats:
    """The table that adds up to 0 along one axis, from its contrasts over their lengths."""
    rows = np.moveaxis(contrasts, axis, 0)
    shares = np.concatenate([np.zeros((1, *rows.shape[1:])), (rows.T / contrast_lengths(len(rows) + 1)).T])
    later = np.cumsum(shares[::-1], axis=0)[::-1] - shares
    return np.moveaxis(later - _numbers(shares) * shares, 0, axis)


def _numbers(rows: NDArray[Any]) -> NDArray[np.int64]:
    """0, 1, ..., n - 1 down the first axis."""
    return np.arange(len(rows)).reshape(-1, *[1] * (rows.ndim - 1))


def outermost(asked: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those of some sets of attributes that lie within no other."""
    kept: dict[tuple[int, ...], None] = {}
    covered: set[tuple[int, ...]] = set()
    for axes in sorted(set(asked), key=lambda one: (-len(one), one)):
        if axes not in covered:
            kept[axes] = None
            if len(axes) <= 8:
                covered.update(part for size in range(len(axes)) for part in combinations(axes, size))
    return list(kept)


def table_by(tables: Tables, wanted: Sequence[int]) -> NDArray[np.int64]:
    """The table by some attributes, in this order, from one that holds them; the last axis stays."""
    for axes, table in tables.items():
        if set(wanted) <= set(axes):
            summed = table.sum(axis=tuple(k for k, axis in enumerate(axes) if axis not in wanted))
            left = [axis for axis in axes if axis in wanted]
            return np.asarray(summed.transpose([*(left.index(axis) for axis in wanted), len(left)]))
    raise ValueError("the tables do not hold what the workload needs")


def moved(block: Block, sizes: Sequence[int]) -> tuple[float, float]:
    """m_B and p_B."""
    coefficients = math.prod(sizes[k] - 1 for k in block)
    return float(coefficients), coefficients / math.prod(sizes[k] for k in block)
