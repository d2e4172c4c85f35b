"""The law of a radius R = Y^(1/b), Y ~ Gamma(a/b): quantiles and moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.gammatail import deviance, log_peak, log_quantile, log_radii
from shapedp.numerics.outward import ROUNDINGS_8192
from shapedp.numerics.quadrature import legendre


@dataclass(frozen=True)
class RadiusRule:
    """R = Y^(1/b), Y ~ Gamma(a/b): quantiles and moments about the typical radius (a/b)^(1/b)."""

    a: float
    b: float

    @property
    def k(self) -> float:
        """The shape of the gamma law."""
        return self.a / self.b

    @cached_property
    def nodes(self) -> tuple[Floats, Floats]:
        """Points z = log(Y/k) and probabilities: 16 Gauss points on each of 48 panels out to e^-81 of the peak."""
        edges = log_radii(self.k, np.linspace(-9.0, 9.0, 49))
        t, w = legendre(16)
        half, centre = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
        z = (centre + half * t).ravel()
        weights = (half * w).ravel() * np.exp(log_peak(self.k) - self.k * deviance(z))
        return z, weights / weights.sum()

    @property
    def far(self) -> float:
        """A z that log(Y/k) exceeds with probability below 1e-40."""
        return float(log_radii(self.k, np.array([10.2]))[0])

    def mean_excess(self, power: float) -> float:
        """E[(R/typical)^power] - 1, by Gamma functions where they resolve it and by quadrature beyond."""
        if self.k < 50:
            ratio = math.lgamma(self.k + power / self.b) - math.lgamma(self.k) - power / self.b * math.log(self.k)
            return math.expm1(ratio)
        z, weights = self.nodes
        return float(np.expm1(power / self.b * z) @ weights)

    def central_moments(self, power: float) -> tuple[float, float, float, float]:
        """The mean excess of (R/typical)^power, and its second to fourth central moments."""
        z, weights = self.nodes
        mean = self.mean_excess(power)
        deviation = np.expm1(power / self.b * z) - mean
        return mean, *(float(deviation**j @ weights) for j in (2, 3, 4))  # type: ignore[return-value]

    @property
    def error(self) -> float:
        """A bound on the relative error of `radii`."""
        return float(ROUNDINGS_8192 * max(1.0, 1 / self.b, 1 / self.a))

    def radii(self, below: Floats, above: Floats) -> Floats:
        """R with P(R <= r) = below = 1 - above, the smaller of the two being relatively accurate.

        Guarantee: relative error at most `error`, or absolute 1e-300 (tested against interval arithmetic).
        """
        return np.exp((log_quantile(self.k, below, above) + math.log(self.k)) / self.b)
