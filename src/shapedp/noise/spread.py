"""How the scale of a law is laid over its coordinates: one for all, one per coordinate, or one per block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.documents import decode, described, encode
from shapedp.noise.base import Law, Traits
from shapedp.numerics.arrays import Floats, block_sizes, frozen
from shapedp.numerics.checks import count, is_scalar, laid_out, nonnegative, total, vector
from shapedp.sampling import Quantile, Source, grid_for, rounded_sum


@dataclass(frozen=True, eq=False)
class Spread:
    """`values` has one entry (all coordinates), dim entries, or one per block of `sizes`."""

    values: Floats
    dim: int
    sizes: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, scale: ArrayLike, dim: int | None, sizes: ArrayLike | None) -> Spread:
        """From a number and `dim`, a vector, or a vector and block `sizes`."""
        if is_scalar(scale):
            if dim is None or sizes is not None:
                raise ValueError("a single scale goes with dim and without sizes")
            return cls(frozen(np.array([nonnegative("scale", scale)])), count("dim", dim))
        values = vector("scale", scale, least=0.0)
        blocks = None if sizes is None else block_sizes("sizes", sizes)
        if blocks is not None and blocks.size != values.size:
            raise ValueError(f"sizes must have one entry per scale ({values.size}), got {blocks.size}")
        coordinates = int(values.size) if blocks is None else total("sizes", blocks)
        if dim is not None and count("dim", dim) != coordinates:
            raise ValueError(f"dim = {dim} does not match the {coordinates} coordinates of scale")
        return cls(frozen(values), coordinates, blocks)

    def expanded(self) -> Floats:
        """One entry per coordinate, or a single one where all are equal."""
        if self.sizes is None:
            return self.values
        laid_out(self.dim)
        return np.repeat(self.values, self.sizes)

    def per_coordinate(self) -> Floats:
        """One entry per coordinate, always."""
        return np.broadcast_to(self.expanded(), self.dim)


@dataclass(frozen=True, eq=False, init=False)
class SpreadLaw(Law):
    """Independent coordinates of one kind, each with its own scale; the sampler is the exact one of that kind.

    `quantile` is the sampler's law of scale 1; `isotropic` says whether coordinates of equal scale are.
    """

    quantile: ClassVar[Quantile]
    isotropic: ClassVar[bool] = False
    spread: Spread

    def __init__(self, scale: ArrayLike, dim: int | None = None, *, sizes: ArrayLike | None = None) -> None:
        object.__setattr__(self, "spread", Spread.of(scale, dim, sizes))

    @classmethod
    def over(cls, scales: Floats, dim: int) -> Self:
        """From one scale for all coordinates, or one for each."""
        return cls(scales[0], dim) if scales.size == 1 else cls(scales)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.spread.dim

    @property
    def scales(self) -> Floats:
        return self.spread.expanded()

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        scales = self.scales
        return rounded_sum(x, self.quantile, scales[0] if scales.size == 1 else scales, None, source)

    def to_json(self) -> dict[str, Any]:
        values, sizes = self.spread.values, self.spread.sizes
        scale = float(values[0]) if values.size == 1 and sizes is None else encode(values)
        return {"law": self.kind, "scale": scale, "dim": self.dim, "sizes": None if sizes is None else sizes.tolist()}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> Self:
        scale = data["scale"]
        values = scale if isinstance(scale, int | float) else decode("scale", scale)
        return cls(values, data["dim"], sizes=data.get("sizes"))

    def traits(self) -> Traits:
        return Traits(independent=True, fair=True, isotropic=self.isotropic, grid=grid_for(self.scales))

    def of_coordinates(self, keep: NDArray[np.bool_]) -> Self:
        return type(self)(self.spread.per_coordinate()[self._kept(keep)])
