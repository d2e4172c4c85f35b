"""Balls: L2 (with `scales` an ellipsoid) and L1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics import sum_bounds
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import laid_out, nonnegative, positive, vector
from shapedp.numerics.outward import ABOVE_8, BELOW_8, ROUNDINGS_8, UNIT
from shapedp.sensitivity.base import Adjacency, Sensitivity, flattened, layout
from shapedp.sensitivity.rows import Rows

_BLOCK = 1 << 15


def quotient(numerator: Floats, scales: Floats) -> Floats:
    """numerator/scales with 0/0 = 0 and x/0 = inf."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.divide(numerator, scales)
    if np.isnan(ratio.max()):
        ratio = np.where(numerator == 0, 0.0, ratio)
    return ratio


def outward(lower: float, upper: float) -> tuple[float, float]:
    """Bounds moved apart by more than the few roundings they carry, subnormal numbers included."""
    return max(math.nextafter(lower * BELOW_8, -math.inf), 0.0), math.nextafter(upper * ABOVE_8, math.inf)


def root_sum_squares(terms: Floats, repeat: int = 1) -> tuple[float, float]:
    """Bounds on |terms|_2, each term standing `repeat` times; inf where a term is. Overwrites `terms`."""
    top = float(terms.max())
    if math.isinf(top):
        return math.inf, math.inf
    if top == 0:
        return outward(0.0, 0.0)
    np.divide(terms, top, out=terms)
    lower, upper = sum_bounds(np.square(terms, out=terms), ROUNDINGS_8)
    return outward(top * math.sqrt(lower * repeat), top * math.sqrt(upper * repeat))


def norm_of_quotient(numerator: Floats, scales: Floats) -> tuple[float, float]:
    """Bounds on |numerator/scales|_2, block by block: no temporary array of the full length."""
    tops, sums = [], []
    for start in range(0, numerator.size, _BLOCK):
        piece = slice(start, start + _BLOCK)
        ratio = quotient(numerator[piece], scales if scales.size == 1 else scales[piece])
        top = float(ratio.max())
        if math.isinf(top):
            return math.inf, math.inf
        if top > 0:
            ratio /= top
            tops.append(top)
            sums.append(float(np.square(ratio, out=ratio).sum()))
    if not tops:
        return outward(0.0, 0.0)
    most = max(tops)
    terms = np.square(np.array(tops) / most) * np.array(sums)
    lower, upper = sum_bounds(terms, 176 * UNIT)  # 160 for pairwise sums, see `sum_bounds`
    return outward(most * math.sqrt(lower), most * math.sqrt(upper))


class Ball(Sensitivity):
    """A set without fixed coordinates, of one radius."""

    radius: float

    def _widths(self) -> Floats:
        return np.array([self.radius])

    def fixed(self) -> NDArray[np.bool_]:
        return np.zeros(laid_out(self.dim), dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class L2(Ball):
    """Differences with |v/scales|_2 <= radius; without `scales` a ball. `L2(1.0, shape=(28, 28))` for tensors.

    Parameters: `radius`; `dim` or `shape` of the answer; `scales`, the axes of an ellipsoid; `adjacency`.

    Example:
        >>> L2(1.0, dim=3).dim, L2(1.0, shape=(28, 28)).dim
        (3, 784)
    """

    kind: ClassVar[str] = "l2"
    radius: float
    shape: tuple[int, ...]
    scales: Floats | None = None
    adjacency: Adjacency | None = None

    def __init__(
        self,
        radius: float,
        dim: int | None = None,
        *,
        shape: Sequence[int] | None = None,
        scales: ArrayLike | None = None,
        adjacency: Adjacency | None = None,
    ) -> None:
        self._fill(adjacency, radius=positive("radius", radius), shape=layout(dim, shape))
        axes = None if scales is None else flattened("scales", scales)
        if axes is not None and axes[1] not in (self.shape, (self.dim,)):
            raise ValueError(f"scales must have dim = {self.dim} entries, got shape {axes[1]}")
        semi = None if axes is None else frozen(vector("scales", axes[0], least=0.0, strict=True))
        object.__setattr__(self, "scales", semi)
        bounds = self._bounds()
        if not 0 < bounds.min() <= bounds.max() < math.inf:
            raise ValueError("radius times scales must be finite and > 0: measure the query in other units")

    def _axes(self) -> Floats:
        return np.ones(1) if self.scales is None else self.scales

    def _bounds(self) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return self.radius * self._axes()

    def l2_reach(self, scales: Floats) -> tuple[float, float]:
        reach = self.radius * float(quotient(self._axes(), scales).max())
        return outward(reach, reach)

    def l1_reach(self, scales: Floats) -> tuple[float, float]:
        ratio = quotient(self._axes(), scales)
        lower, upper = root_sum_squares(ratio, self.dim if ratio.size == 1 else 1)
        return outward(self.radius * lower, self.radius * upper)

    def extreme(self) -> Floats:
        return self.radius * np.broadcast_to(self._axes(), laid_out(self.dim)) / math.sqrt(self.dim)

    def scaled(self, factor: float, adjacency: Adjacency | None) -> L2:
        return L2(
            self.radius * nonnegative("factor", factor), shape=self.shape, scales=self.scales, adjacency=adjacency
        )

    def _clip(self, rows: Rows) -> Rows:
        return rows.pulled_into(self._bounds(), 2)


@dataclass(frozen=True, eq=False)
class L1(Ball):
    """Differences with |v|_1 <= radius.

    Parameters: `radius`; `dim` or `shape` of the answer; `adjacency`, the neighbour relation.

    Example:
        >>> L1(2.0, dim=4).extreme()
        array([2., 0., 0., 0.])
    """

    kind: ClassVar[str] = "l1"
    radius: float
    shape: tuple[int, ...]
    adjacency: Adjacency | None = None

    def __init__(
        self,
        radius: float,
        dim: int | None = None,
        *,
        shape: Sequence[int] | None = None,
        adjacency: Adjacency | None = None,
    ) -> None:
        self._fill(adjacency, radius=positive("radius", radius), shape=layout(dim, shape))

    def of_integers(self) -> L1:
        if not self.radius >= 1:
            raise ValueError("radius must be at least 1 for whole numbers: nobody could change such a query")
        return L1(math.floor(self.radius), shape=self.shape, adjacency=self.adjacency)._declared_whole()

    def l2_reach(self, scales: Floats) -> tuple[float, float]:
        return self.l1_reach(scales)

    def l1_reach(self, scales: Floats) -> tuple[float, float]:
        reach = self.radius * float(quotient(np.ones(1), scales).max())
        return outward(reach, reach)

    def extreme(self) -> Floats:
        corner = np.zeros(laid_out(self.dim))
        corner[0] = self.radius
        return corner

    def scaled(self, factor: float, adjacency: Adjacency | None) -> L1:
        return L1(self.radius * nonnegative("factor", factor), shape=self.shape, adjacency=adjacency)

    def _clip(self, rows: Rows) -> Rows:
        return rows.pulled_into(self._widths(), 1)
