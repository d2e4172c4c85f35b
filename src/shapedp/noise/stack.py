"""Independent laws side by side: one tensor law per parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.noise.base import Floats, Law
from shapedp.noise.tensor import TensorGaussian
from shapedp.sampling import Source


@dataclass(frozen=True, eq=False)
class Stack(Law):
    """The concatenation of independent tensor laws."""

    kind: ClassVar[str] = "stack"
    laws: tuple[TensorGaussian, ...]

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
        parts = zip(self.laws, self._split(np.asarray(x)), strict=True)
        return np.concatenate([law.add_to(part, source) for law, part in parts], axis=-1)

    def times(self, factor: float) -> Stack:
        """The same law with every scale multiplied."""
        return Stack(tuple(law.times(factor) for law in self.laws))

    def _split(self, x: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(x, np.cumsum([law.dim for law in self.laws])[:-1], axis=-1)

    def to_json(self) -> dict[str, Any]:
        return {"law": self.kind, "laws": [law.to_json() for law in self.laws]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Stack:
        """What `to_json` wrote."""
        return cls(tuple(TensorGaussian.from_json(law) for law in data["laws"]))
