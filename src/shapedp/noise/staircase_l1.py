"""Staircase noise in the l1 norm of several coordinates: a baseline for simulations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.noise.base import Law, Traits, confidence_level, of_order, registered
from shapedp.noise.staircase import best_gamma, radial_moments, steps_summed
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import LAID_OUT, count, numeric, positive, share
from shapedp.numerics.outward import ABOVE_8
from shapedp.privacy.losses import LaplaceLoss
from shapedp.sampling import Source
from shapedp.sensitivity import Sensitivity

_LARGEST = 1400.0  # e^(epsilon/2) is a float


@registered()
@dataclass(frozen=True, eq=False, init=False)
class L1Staircase(Law):
    """Density constant on l1 shells: height e^(-k epsilon) on k <= |x|_1/width < k + gamma, lower by e^epsilon beyond.

    Guarantee: (epsilon, 0)-DP for an L1 sensitivity of `width`; least E |n|_1 in dimensions 1 and 2.
    A baseline: it is drawn in simulations only (`rng=`), no float-safe sampler is known for it.
    Reference: Geng, Kairouz, Oh and Viswanath 2015, Theorem 1.

    Parameters: `width`, `epsilon`, `dim`, and `gamma`, the best one where it is None.

    Example:
        >>> L1Staircase(1.0, 0.5, 2).scales
        array([1.])
    """

    kind: ClassVar[str] = "l1-staircase"
    phrase: ClassVar[str] = "staircase noise in the sum of absolute values (no safe sampler is known: simulations only)"
    parameters: ClassVar[tuple[str, ...]] = ("width", "epsilon", "dim", "gamma")
    width: float
    epsilon: float
    dim: int
    gamma: float

    def __init__(self, width: float, epsilon: float, dim: int, *, gamma: float | None = None) -> None:
        object.__setattr__(self, "width", positive("width", width))
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "dim", count("dim", dim))
        if not (self.epsilon <= _LARGEST and steps_summed(self.dim, self.epsilon, 1.0) <= LAID_OUT >> 8):
            raise ValueError(
                f"epsilon={self.epsilon:g} in {self.dim} dimensions: the steps cannot be summed one by one"
            )
        fraction = best_gamma(self.dim, self.epsilon, 1.0) if gamma is None else share("gamma", gamma)
        object.__setattr__(self, "gamma", fraction)

    @property
    def scales(self) -> Floats:
        return np.array([self.width])

    def _radial(self, power: float) -> float:
        mass, total = radial_moments(self.dim, self.epsilon, self.gamma, power)
        return float(total / mass * self.width**power)

    def log_density(self, x: Floats) -> Floats:
        radius = np.abs(np.asarray(x, dtype=np.float64)).sum(-1) / self.width
        level = np.floor(radius) + (radius - np.floor(radius) >= self.gamma)
        mass = radial_moments(self.dim, self.epsilon, self.gamma, 1.0)[0]
        volume = self.dim * math.log(2 * self.width) - math.lgamma(self.dim) + math.log(mass)
        return np.asarray(-self.epsilon * level - volume)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """E |n_i|^p: a coordinate is |n|_1 times a Beta(1, dim - 1) variable."""
        share = math.exp(math.lgamma(p + 1) + math.lgamma(self.dim) - math.lgamma(p + self.dim))
        return np.array([self._radial(p) * share])

    def variances(self) -> Floats:
        return self.absolute_moments(2.0)

    def half_widths(self, confidence: float) -> Floats:
        """c with P(|n_i| > c) <= 1 - confidence, by Markov's inequality."""
        return np.sqrt(self.variances() / (1 - confidence_level(confidence)))

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        if source.secure:
            raise ValueError("l1 staircase noise has no float-safe sampler: use laplace noise, or rng= to simulate")
        values = np.asarray(numeric("x", x), dtype=np.float64)
        n = values.size // self.dim
        edges = np.arange(max(math.ceil(60 / self.epsilon), 64), dtype=np.float64)
        cuts = np.concatenate([edges, edges + self.gamma])
        tops = np.concatenate([edges + self.gamma, edges + 1])
        level = np.concatenate([edges, edges + 1])
        mass = np.exp(-self.epsilon * level) * (tops**self.dim - cuts**self.dim)
        uniform = (source.words(3 * n).astype(np.float64) / 2.0**64).reshape(3, n)
        shell = np.minimum(np.searchsorted(np.cumsum(mass) / mass.sum(), uniform[0]), mass.size - 1)
        low, high = cuts[shell] ** self.dim, tops[shell] ** self.dim
        radius = (low + (high - low) * uniform[1]) ** (1 / self.dim) * self.width
        waits = -np.log((source.words(n * self.dim).astype(np.float64) + 1) / 2.0**64).reshape(n, self.dim)
        signs = np.where(source.words(n * self.dim) & np.uint64(1), 1.0, -1.0).reshape(n, self.dim)
        noise = signs * waits / waits.sum(axis=1, keepdims=True) * radius[:, None]
        return np.asarray(values + noise.reshape(values.shape))

    def traits(self) -> Traits:
        return Traits(fair=True, widths=False)

    def _loss(self, sensitivity: Sensitivity) -> LaplaceLoss:
        """|x + v|_1 <= |x|_1 + |v|_1: ceil(|v|_1/width) levels at most."""
        reach = sensitivity.l1_reach(np.array([self.width]))[1]
        return LaplaceLoss(self.epsilon * math.ceil(reach) * ABOVE_8, continuous=False)
