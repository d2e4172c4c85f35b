"""Gaussian noise: isotropic, diagonal or block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from shapedp.noise.base import Floats, confidence_level, of_order
from shapedp.noise.spread import SpreadLaw


@dataclass(frozen=True, eq=False, init=False)
class Gaussian(SpreadLaw):
    """N(0, diag(scale^2)): `Gaussian(s, dim=M)`, `Gaussian(vector)` or `Gaussian(vector, sizes=blocks)`."""

    kind: ClassVar[str] = "gaussian"

    def log_density(self, x: Floats) -> Floats:
        scales = self.spread.per_coordinate()
        z = np.asarray(x, dtype=np.float64) / scales
        return np.asarray(-0.5 * np.square(z).sum(-1) - np.log(scales).sum() - 0.5 * self.dim * math.log(2 * math.pi))

    def variances(self) -> Floats:
        return np.square(self.scales)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """sigma^p 2^(p/2) Gamma((p + 1)/2)/sqrt(pi)."""
        return self.scales**p * math.exp(0.5 * p * math.log(2) + math.lgamma((p + 1) / 2) - 0.5 * math.log(math.pi))

    def half_widths(self, confidence: float) -> Floats:
        return self.scales * float(special.ndtri(0.5 + confidence_level(confidence) / 2))
