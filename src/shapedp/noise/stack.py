"""Independent laws side by side: one tensor law per parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.documents import described
from shapedp.noise.base import Law, registered
from shapedp.noise.tensor import TensorGaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import numeric
from shapedp.numerics.outward import ROUNDINGS_256
from shapedp.privacy import GaussianLoss
from shapedp.sampling import Source
from shapedp.sensitivity import L2, Blocks, Sensitivity


@registered()
@dataclass(frozen=True, eq=False)
class Stack(Law):
    """The concatenation of independent tensor laws."""

    kind: ClassVar[str] = "stack"
    laws: tuple[TensorGaussian, ...]

    def __post_init__(self) -> None:
        given: Any = self.laws
        if not isinstance(given, tuple) or not given or not all(isinstance(law, TensorGaussian) for law in given):
            raise TypeError("laws must be a tuple of at least one tensor law")

    @property
    def dim(self) -> int:  # type: ignore[override]
        return sum(law.dim for law in self.laws)

    @property
    def scales(self) -> Floats:
        return np.concatenate([law.scales for law in self.laws])

    def variances(self) -> Floats:
        return np.concatenate([law.variances() for law in self.laws])

    def half_widths(self, confidence: float) -> Floats:
        return np.concatenate([law.half_widths(confidence) for law in self.laws])

    def log_density(self, x: Floats) -> Floats:
        return np.asarray(sum(law.log_density(part) for law, part in zip(self.laws, self._split(x), strict=True)))

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        parts = zip(self.laws, self._split(numeric("x", x)), strict=True)
        return np.concatenate([law.add_to(part, source) for law, part in parts], axis=-1)

    def times(self, factor: float) -> Stack:
        """The same law with every scale multiplied."""
        return Stack(tuple(law.times(factor) for law in self.laws))

    def _split(self, x: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(x, np.cumsum([law.dim for law in self.laws])[:-1], axis=-1)

    def to_json(self) -> dict[str, Any]:
        return {"law": self.kind, "laws": [law.to_json() for law in self.laws]}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> Stack:
        return cls(tuple(TensorGaussian.from_json(law) for law in data["laws"]))

    def _loss(self, sensitivity: Sensitivity) -> GaussianLoss:
        """mu^2 = sum_m (radius_m max_p |W_p|_2)^2: within a block the difference may sit in its weakest law."""
        if isinstance(sensitivity, L2) and sensitivity.scales is None:
            sensitivity = Blocks([sensitivity.radius], [sensitivity.dim])
        if not isinstance(sensitivity, Blocks):
            raise TypeError(f"no bound is known for tensor noise on {sensitivity.kind!r}: use Flat or PerLayer clips")
        sizes = np.array([law.dim for law in self.laws])
        ends = np.cumsum(sizes)
        block = np.searchsorted(np.cumsum(sensitivity.sizes), ends, side="left")
        if (block != np.searchsorted(np.cumsum(sensitivity.sizes), ends - sizes, side="right")).any():
            raise TypeError("a tensor law lies across two blocks of the set: clip by layers or as a whole")
        bounds = np.zeros((2, sensitivity.radii.size))
        for at, law in zip(block, self.laws, strict=True):
            loss = law._loss(L2(1.0, shape=law.shape))
            least = loss.mu if loss.least is None else loss.least
            bounds[:, at] = np.maximum(bounds[:, at], (least, loss.mu))
        low, high = (math.sqrt(math.fsum(np.square(sensitivity.radii * one))) for one in bounds)
        return GaussianLoss(high * (1 + ROUNDINGS_256), low * (1 - ROUNDINGS_256))
