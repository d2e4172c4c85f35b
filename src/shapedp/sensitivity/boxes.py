"""A box (a bound per coordinate) and blocks (an L2 bound per group of coordinates)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics import sum_bounds
from shapedp.numerics.arrays import Floats, block_index, block_sizes
from shapedp.numerics.checks import laid_out, nonnegative, vector
from shapedp.numerics.outward import ROUNDINGS_2, ROUNDINGS_4
from shapedp.sensitivity.balls import norm_of_quotient, outward, quotient
from shapedp.sensitivity.base import Adjacency, Sensitivity, flattened, moving
from shapedp.sensitivity.rows import Rows

_HUGE = 1e290  # sums of larger terms may overflow


def _total(terms: Floats) -> tuple[float, float]:
    top = float(terms.max())
    if top > _HUGE:
        return top, math.inf
    lower, upper = sum_bounds(terms, ROUNDINGS_4)
    return outward(max(lower, 0.0), upper)


@dataclass(frozen=True, eq=False)
class Box(Sensitivity):
    """Differences with |v_i| <= profile_i; a profile of several dimensions is that of a tensor query.

    Parameters: `profile`, a bound per coordinate; `adjacency`, the neighbour relation.

    Example:
        >>> Box([1.0, 0.5]).l1_reach(np.ones(1))[1] >= 1.5
        True
    """

    kind: ClassVar[str] = "box"
    profile: Floats
    shape: tuple[int, ...]
    adjacency: Adjacency | None = None

    def __init__(self, profile: ArrayLike, *, adjacency: Adjacency | None = None) -> None:
        flat, shape = flattened("profile", profile)
        self._fill(adjacency, profile=moving("profile", vector("profile", flat, least=0.0)), shape=shape)

    def of_integers(self) -> Box:
        if not self.profile.max() >= 1:
            raise ValueError("profile must have an entry of at least 1 for whole numbers")
        return Box(np.floor(self.profile).reshape(self.shape), adjacency=self.adjacency)._declared_whole()

    def l2_reach(self, scales: Floats) -> tuple[float, float]:
        return norm_of_quotient(self.profile, scales)

    def l1_reach(self, scales: Floats) -> tuple[float, float]:
        return _total(quotient(self.profile, scales))

    def extreme(self) -> Floats:
        return self.profile

    def scaled(self, factor: float, adjacency: Adjacency | None) -> Box:
        return Box((self.profile * nonnegative("factor", factor)).reshape(self.shape), adjacency=adjacency)

    def fixed(self) -> NDArray[np.bool_]:
        return np.asarray(self.profile == 0)

    def _widths(self) -> Floats:
        return self.profile

    def _clip(self, rows: Rows) -> Rows:
        return rows.clamped(self.profile)


@dataclass(frozen=True, eq=False)
class Blocks(Sensitivity):
    """Differences whose m-th block of sizes_m coordinates has |v_m|_2 <= radii_m.

    Parameters: `radii` and `sizes`, one of each per block; `adjacency`, the neighbour relation.

    Example:
        >>> Blocks([1.0, 0.5], [3, 2]).dim
        5
    """

    kind: ClassVar[str] = "blocks"
    radii: Floats
    sizes: NDArray[np.int64]
    adjacency: Adjacency | None = None

    def __init__(self, radii: ArrayLike, sizes: ArrayLike, *, adjacency: Adjacency | None = None) -> None:
        bounds = moving("radii", vector("radii", radii, least=0.0))
        self._fill(adjacency, radii=bounds, sizes=block_sizes("sizes", sizes))
        if self.sizes.size != bounds.size:
            raise ValueError(f"sizes must have one entry per radius ({bounds.size}), got {self.sizes.size}")

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (sum(self.sizes.tolist()),)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each block begins."""
        return block_index(self.sizes)

    def l2_reach(self, scales: Floats) -> tuple[float, float]:
        least = scales if scales.size == 1 else np.minimum.reduceat(scales, self.starts)
        return norm_of_quotient(self.radii, least)

    def l1_reach(self, scales: Floats) -> tuple[float, float]:
        """sum_m radii_m |1/scales|_2 over block m, its smallest scale taken out so that squares do not overflow."""
        if scales.size == 1:
            least, inner = scales, np.sqrt(self.sizes)
        else:
            least = np.minimum.reduceat(scales, self.starts)
            shrunk = quotient(np.repeat(least, self.sizes), scales)
            inner = np.sqrt(np.maximum(np.add.reduceat(np.square(shrunk), self.starts), 1.0))
        with np.errstate(over="ignore"):
            lower, upper = _total(quotient(self.radii, least) * inner)
        slack = (int(self.sizes.max()) + 8) * ROUNDINGS_2
        return outward(lower * (1 - slack), upper * (1 + slack))

    def extreme(self) -> Floats:
        laid_out(self.dim)
        return np.repeat(self.radii / np.sqrt(self.sizes), self.sizes)

    def scaled(self, factor: float, adjacency: Adjacency | None) -> Blocks:
        return Blocks(self.radii * nonnegative("factor", factor), self.sizes, adjacency=adjacency)

    def fixed(self) -> NDArray[np.bool_]:
        laid_out(self.dim)
        return np.repeat(self.radii == 0, self.sizes)

    def _widths(self) -> Floats:
        return self.radii

    def _clip(self, rows: Rows) -> Rows:
        return rows.pulled_into(np.repeat(self.radii, self.sizes), 2, self.starts)
