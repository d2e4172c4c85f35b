"""The parts of a strategy: blocks of turned tables, in families that share their special attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from shapedp.noise.rotation import Mode, Rotation
from shapedp.numerics.arrays import Floats, frozen

LARGEST = 4096  # cells of a plain attribute
Block = tuple[int, ...]


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


@lru_cache(maxsize=256)
def contrasts(size: int) -> Rotation:
    """The sum over sqrt(n), then n - 1 contrasts (Helmert), rounded to 24 bits so that each adds up to 0 exactly."""
    if size > LARGEST:
        raise ValueError(f"tables along an attribute of {size} cells are not planned: at most {LARGEST}")
    rows = np.zeros((size, size))
    rows[0] = 1 / math.sqrt(size)
    for k in range(1, size):
        rows[k, :k] = 1 / math.sqrt(k * (k + 1))
        rows[k, k] = -k / math.sqrt(k * (k + 1))
    whole = np.array(Rotation.near(rows).whole)
    last = np.arange(1, size)
    whole[last, last] -= whole[1:].sum(axis=1)
    return Rotation(frozen(whole))


def moved(block: Block, sizes: Sequence[int]) -> tuple[float, float]:
    """m_B and p_B."""
    coefficients = math.prod(sizes[k] - 1 for k in block)
    return float(coefficients), coefficients / math.prod(sizes[k] for k in block)
