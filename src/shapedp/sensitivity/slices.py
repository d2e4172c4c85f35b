"""L2 bounds per slice of one mode of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, laid_out, nonnegative, vector
from shapedp.sensitivity.balls import norm_of_quotient
from shapedp.sensitivity.base import Adjacency, Sensitivity, layout, moving
from shapedp.sensitivity.boxes import Blocks
from shapedp.sensitivity.rows import Rows


@dataclass(frozen=True, eq=False)
class Slices(Sensitivity):
    """Tensors whose m-th slice along `mode` has |v_m|_2 <= radii_m: a channel, a time step, a layer.

    `Slices([1.0, 0.5, 0.1], shape=(28, 28, 3), mode=2)`; modes are counted from 0, as numpy's axes.

    Parameters: `radii`, one per slice; `shape` of the tensor; `mode`; `adjacency`, the neighbour relation.

    Example:
        >>> Slices([1.0, 0.5], shape=(3, 2), mode=1).size
        3
    """

    kind: ClassVar[str] = "slices"
    radii: Floats
    shape: tuple[int, ...]
    mode: int
    adjacency: Adjacency | None = None

    def __init__(
        self, radii: ArrayLike, shape: Sequence[int], mode: int, *, adjacency: Adjacency | None = None
    ) -> None:
        bounds = moving("radii", vector("radii", radii, least=0.0))
        self._fill(adjacency, radii=bounds, shape=layout(None, shape), mode=count("mode", mode, least=0))
        if self.mode >= len(self.shape) or self.shape[self.mode] != bounds.size:
            raise ValueError(
                f"mode {mode} of shape {self.shape} must have one slice per radius ({bounds.size}): "
                "modes are counted from 0"
            )

    @property
    def size(self) -> int:
        """The number of entries of one slice."""
        return self.dim // self.radii.size

    @property
    def panels(self) -> tuple[int, int, int]:
        """The shape seen as (entries before the mode, slices, entries after)."""
        before = math.prod(self.shape[: self.mode])
        return before, self.radii.size, self.dim // (before * self.radii.size)

    def l2_reach(self, scales: Floats) -> tuple[float, float]:
        least = scales if scales.size == 1 else scales.reshape(self.panels).min(axis=(0, 2))
        return norm_of_quotient(self.radii, least)

    def l1_reach(self, scales: Floats) -> tuple[float, float]:
        """That of the blocks the slices are, in an order that makes them blocks."""
        return self.blocks.l1_reach(self.by_slice(scales))

    def extreme(self) -> Floats:
        laid_out(self.dim)
        each = (self.radii / math.sqrt(self.size)).reshape(1, -1, 1)
        return np.broadcast_to(each, self.panels).reshape(-1)

    def scaled(self, factor: float, adjacency: Adjacency | None) -> Slices:
        return Slices(self.radii * nonnegative("factor", factor), self.shape, self.mode, adjacency=adjacency)

    def fixed(self) -> NDArray[np.bool_]:
        laid_out(self.dim)
        return np.broadcast_to((self.radii == 0).reshape(1, -1, 1), self.panels).reshape(-1)

    def _widths(self) -> Floats:
        return self.radii

    def _extent(self) -> dict[str, Any]:
        return {"shape": list(self.shape)}

    def by_slice(self, values: Floats) -> Floats:
        """One value per coordinate, or a single one, in the order of `blocks`."""
        return values if values.size == 1 else values.reshape(self.panels).transpose(1, 0, 2).reshape(-1)

    def in_place(self, values: Floats) -> Floats:
        """The inverse of `by_slice`."""
        before, slices, after = self.panels
        return values if values.size == 1 else values.reshape(slices, before, after).transpose(1, 0, 2).reshape(-1)

    @property
    def blocks(self) -> Blocks:
        """The same set, its coordinates sorted by slice."""
        return Blocks(self.radii, np.full(self.radii.size, self.size), adjacency=self.adjacency)

    def _clip(self, rows: Rows) -> Rows:
        order = np.arange(self.dim).reshape(self.panels).transpose(1, 0, 2).reshape(-1)
        return self.blocks._clip(rows.taken(order)).taken(np.argsort(order))
