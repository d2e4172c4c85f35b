"""Gaussian noise on some coordinates, Laplace on the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shapedp.boundary.documents import decode, described, encode
from shapedp.noise.base import Floats, Law, confidence_level, of_order
from shapedp.numerics.arrays import frozen
from shapedp.numerics.checks import numeric, vector
from shapedp.sampling import Source, rounded_sum


@dataclass(frozen=True, eq=False, init=False)
class Mixed(Law):
    """Independent coordinates: N(0, scale_i^2) where `gaussian_i`, density exp(-|x|/scale_i)/(2 scale_i) elsewhere."""

    kind: ClassVar[str] = "mixed"
    values: Floats
    gaussian: NDArray[np.bool_]

    def __init__(self, scale: ArrayLike, gaussian: ArrayLike) -> None:
        scales = vector("scale", scale, least=0.0)
        chosen = np.array(gaussian)
        if chosen.shape != scales.shape or chosen.dtype != np.bool_:
            raise ValueError(f"gaussian must hold one boolean per scale ({scales.size}), got {gaussian!r}")
        chosen.setflags(write=False)
        object.__setattr__(self, "values", frozen(scales))
        object.__setattr__(self, "gaussian", chosen)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return int(self.values.size)

    @property
    def scales(self) -> Floats:
        return self.values

    def log_density(self, x: Floats) -> Floats:
        z = np.asarray(x, dtype=np.float64) / self.values
        normal = -0.5 * np.square(z) - 0.5 * math.log(2 * math.pi)
        each = np.where(self.gaussian, normal, -np.abs(z) - math.log(2))
        return np.asarray(each.sum(-1) - np.log(self.values).sum())

    def variances(self) -> Floats:
        return np.where(self.gaussian, 1.0, 2.0) * np.square(self.values)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """As for each kind of coordinate."""
        normal = math.exp(0.5 * p * math.log(2) + math.lgamma((p + 1) / 2) - 0.5 * math.log(math.pi))
        return np.asarray(np.where(self.gaussian, normal, math.gamma(p + 1)) * self.values**p)

    def half_widths(self, confidence: float) -> Floats:
        level = confidence_level(confidence)
        normal = float(special.ndtri(0.5 + level / 2))
        return np.asarray(np.where(self.gaussian, normal, -math.log1p(-level)) * self.values)

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        x = numeric("x", x)
        out = np.empty(x.shape, dtype=np.float32 if x.dtype == np.float32 else np.float64)
        for kind, chosen in (("gaussian", self.gaussian), ("laplace", ~self.gaussian)):
            if chosen.any():
                out[..., chosen] = rounded_sum(x[..., chosen], kind, self.values[chosen], None, source)
        return out

    def to_json(self) -> dict[str, Any]:
        return {
            "law": self.kind,
            "scale": encode(self.values),
            "gaussian": encode(self.gaussian.astype(np.float64)),
        }

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> Mixed:
        """What `to_json` wrote."""
        return cls(decode("scale", data["scale"]), decode("gaussian", data["gaussian"]) != 0)
