"""Laplace noise, continuous and on the integers of a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.documents import decode, described, encode
from shapedp.noise.base import Floats, Law, confidence_level, of_order
from shapedp.noise.spread import SpreadLaw
from shapedp.numerics.arrays import frozen
from shapedp.numerics.checks import numeric, size, vector
from shapedp.sampling import Source, discrete_laplace

_REACH = 2.0**62
MAX_STEPS = 2**50


@dataclass(frozen=True, eq=False, init=False)
class Laplace(SpreadLaw):
    """Independent Laplace coordinates with density exp(-|x|/b)/(2 b): `Laplace(b, dim=M)` or `Laplace(vector)`."""

    kind: ClassVar[str] = "laplace"

    def log_density(self, x: Floats) -> Floats:
        scales = self.spread.per_coordinate()
        return np.asarray(-(np.abs(x) / scales).sum(-1) - np.log(2 * scales).sum())

    def variances(self) -> Floats:
        return 2 * np.square(self.scales)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """b^p Gamma(p + 1)."""
        return np.asarray(self.scales**p * math.gamma(p + 1))

    def half_widths(self, confidence: float) -> Floats:
        return self.scales * -math.log1p(-confidence_level(confidence))


@dataclass(frozen=True, eq=False, init=False)
class DiscreteLaplace(Law):
    """P(n_i = k grid_i) ~ exp(-|k|/steps_i) over the integers k: Laplace noise of scale steps times grid.

    Drawn in integer arithmetic: it promises delta = 0 exactly, which floating-point noise cannot. The input is
    rounded to the grid first, which widens the sensitivity by grid_i in each coordinate; the loss counts it.
    """

    kind: ClassVar[str] = "discrete-laplace"
    steps: Floats
    grid: Floats
    dim: int

    def __init__(self, steps: ArrayLike, grid: ArrayLike, dim: int) -> None:
        steps, grid = (
            vector("steps", np.atleast_1d(numeric("steps", steps)), least=0.0),
            vector("grid", np.atleast_1d(numeric("grid", grid)), least=0.0),
        )
        if (steps != np.rint(steps)).any() or steps.max() > MAX_STEPS:
            raise ValueError("steps must be whole numbers of at most 2^50")
        if (np.frexp(grid)[0] != 0.5).any():
            raise ValueError("grid must hold powers of two")
        if {steps.size, grid.size} - {1, size("dim", dim)} or steps.size != grid.size:
            raise ValueError(f"steps and grid must both have 1 or dim = {dim} entries, got {steps.size}, {grid.size}")
        object.__setattr__(self, "steps", frozen(steps))
        object.__setattr__(self, "grid", frozen(grid))
        object.__setattr__(self, "dim", dim)

    @property
    def scales(self) -> Floats:
        return self.steps * self.grid

    def log_density(self, x: Floats) -> Floats:
        """log of the probability of each grid point, per cell of the grid."""
        noisy = self.steps > 0
        steps, k = np.broadcast_to(self.steps, self.dim), np.abs(x) / self.grid
        if not noisy.all() or (k != np.rint(k)).any():
            raise ValueError("x must lie on the grid, and every coordinate must carry noise")
        return np.asarray(-(k / steps).sum(-1) + np.log(np.tanh(0.5 / steps)).sum())

    def variances(self) -> Floats:
        """grid^2 2q/(1-q)^2 with q = e^(-1/steps), that is grid^2/(2 sinh^2(1/(2 steps)))."""
        with np.errstate(divide="ignore"):
            half = 0.5 / self.steps
        return np.where(self.steps > 0, np.square(self.grid) / (2 * np.square(np.sinh(np.minimum(half, 300.0)))), 0.0)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """grid^p tanh(1/(2 steps)) 2 sum_{k > 0} k^p e^(-k/steps), the sum as Gamma(p + 1) steps^(p + 1) when long."""
        steps, back = np.unique(self.steps, return_inverse=True)
        sums = np.array([_power_sum(float(step), p) for step in steps])
        with np.errstate(divide="ignore"):
            return np.asarray(self.grid**p * 2 * (np.tanh(0.5 / steps) * sums)[back])

    def half_widths(self, confidence: float) -> Floats:
        """The smallest grid multiple c with P(|n_i| <= c) >= confidence."""
        tail = 1 - confidence_level(confidence)
        with np.errstate(divide="ignore"):
            q_log = -1 / self.steps
            k = np.ceil(np.log(tail * (1 + np.exp(q_log)) / 2) / q_log - 1)
        return np.where(self.steps > 0, np.maximum(k, 0.0), 0.0) * self.grid

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        x = numeric("x", x)
        multiple = np.asarray(x, dtype=np.float64) / self.grid
        if not (np.abs(multiple) < _REACH).all():
            raise ValueError("x must be finite and below 2^62 grid steps of the mechanism")
        noisy = np.broadcast_to(self.steps > 0, x.shape)
        noise = discrete_laplace(np.maximum(self.steps, 1).astype(np.int64), x.shape, source)
        total = (np.rint(multiple).astype(np.int64) + noise).astype(np.float64) * self.grid
        return np.where(noisy, total, x).astype(np.float32 if x.dtype == np.float32 else np.float64)

    def to_json(self) -> dict[str, Any]:
        return {"law": self.kind, "steps": encode(self.steps), "grid": encode(self.grid), "dim": self.dim}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> DiscreteLaplace:
        """What `to_json` wrote."""
        return cls(decode("steps", data["steps"]), decode("grid", data["grid"]), data["dim"])


def _power_sum(steps: float, p: float) -> float:
    """sum_{k > 0} k^p e^(-k/steps), to a relative 1e-6 and better."""
    if steps == 0:
        return 0.0
    if steps > 1000:
        return float(math.gamma(p + 1) * steps ** (p + 1))
    k = np.arange(1, math.ceil((60 + 4 * p) * steps) + 1)
    return float((k**p * np.exp(-k / steps)).sum())
