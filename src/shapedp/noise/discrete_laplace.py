"""Laplace noise on the integers of a grid: pure differential privacy, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.noise.base import confidence_level, of_order, registered
from shapedp.noise.grid import GridLaw
from shapedp.noise.request import DoesNotApplyError, Request
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count
from shapedp.numerics.outward import ABOVE_8, ABOVE_8192, BELOW_8, ROUNDINGS_8192
from shapedp.privacy.losses import LaplaceLoss
from shapedp.privacy.losses.sums import ratios_of
from shapedp.sampling import Source, discrete_laplace
from shapedp.sensitivity import Sensitivity

MAX_STEPS = 2**50
_GRID_BITS = 20


@registered()
@dataclass(frozen=True, eq=False, init=False)
class DiscreteLaplace(GridLaw):
    """P(n_i = k grid_i) ~ exp(-|k|/steps_i) over the integers k: Laplace noise of scale steps times grid.

    Drawn in integer arithmetic: it promises delta = 0 exactly, which floating-point noise cannot. The input is
    rounded to the grid first, which widens the sensitivity by grid_i in each coordinate; the loss counts it.

    Parameters: `steps` holds whole numbers, `grid` powers of two; both have one entry, or `dim` of them.

    Example:
        >>> float(DiscreteLaplace(4, 0.25, dim=1).scales[0])
        1.0
    """

    kind: ClassVar[str] = "discrete-laplace"
    phrase: ClassVar[str] = "Laplace noise on a grid, drawn in integer arithmetic, independent in every coordinate"
    parameters: ClassVar[tuple[str, ...]] = ("steps", "grid", "dim")
    steps: Floats
    grid: Floats
    dim: int

    def __init__(self, steps: ArrayLike, grid: ArrayLike, dim: int) -> None:
        self._fill(steps=steps, grid=grid)
        sizes, dim = (self.steps.size, self.grid.size), count("dim", dim)
        if set(sizes) - {1, dim} or sizes[0] != sizes[1]:
            raise ValueError(f"steps and grid must both have 1 or dim = {dim} entries, got {sizes[0]}, {sizes[1]}")
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

    def magnitude_levels(self, level: float) -> tuple[Floats, Floats]:
        widths = self.half_widths(level)
        with np.errstate(divide="ignore"):
            q = np.exp(-1 / self.steps)
        return widths, 1 - 2 * np.power(q, widths / self.grid + 1) / (1 + q)

    @property
    def steps_per_scale(self) -> Floats:
        return self.steps

    def _draw(self, shape: tuple[int, ...], source: Source) -> NDArray[np.int64]:
        return discrete_laplace(np.maximum(self.steps, 1).astype(np.int64), shape, source)

    def of_coordinates(self, keep: NDArray[np.bool_]) -> DiscreteLaplace:
        keep = self._kept(keep)
        steps, grid = (np.broadcast_to(part, self.dim)[keep] for part in (self.steps, self.grid))
        return DiscreteLaplace(steps, grid, int(keep.sum()))

    def _loss(self, sensitivity: Sensitivity) -> LaplaceLoss:
        """Rounding the input moves each coordinate by at most one more grid step: sum 1/steps on top.

        Whole numbers on a grid of 1 or less are not rounded.

        With q = e^(-1/steps) a shift by s steps has delta(eps) = 1 - min over x of (q^x + e^eps q^(s - x))/(q^-1/2 +
        q^1/2) <= 1 - e^((eps - s/steps)/2)/cosh(1/(2 steps)): that of continuous noise of ratio s/steps + 2 log
        cosh(1/(2 steps)), the latter at most 1/(4 steps^2).
        """
        moving = ~sensitivity.fixed() if self.steps.size > 1 else np.ones(1, dtype=np.bool_)
        copies = self.dim if self.steps.size == 1 else 1
        with np.errstate(divide="ignore"):
            extra = float((1 / self.steps[moving]).sum()) * copies * ABOVE_8192
            finer = float((0.25 / self.steps[moving] ** 2).sum()) * copies
        whole = np.floor(np.abs(sensitivity.extreme()) / self.grid) * self.grid
        reach = sensitivity.l1_reach(self.scales)[1]
        shown = ratios_of(whole, self.scales) * BELOW_8
        pure = (reach + (0.0 if sensitivity.unrounded(self.grid) else extra)) * ABOVE_8
        return LaplaceLoss(pure, shown, continuous=False, wider=(pure + finer) * ABOVE_8192)

    @classmethod
    def above(cls, scales: Floats, request: Request) -> DiscreteLaplace:
        """Scales rounded up to whole steps of a grid so fine that rounding the input costs about 2^-20 of epsilon."""
        dim, epsilon = request.sensitivity.dim, request.epsilon
        bits = min(_GRID_BITS + math.ceil(math.log2(dim / min(epsilon, 1.0))), MAX_STEPS.bit_length() - 3)
        exponent = np.frexp(np.where(scales > 0, scales, 1.0))[1]
        if int(exponent.min()) - bits < -1000:
            raise DoesNotApplyError("the noise scale is too small for a grid of floats: measure x in smaller units")
        grid = np.ldexp(1.0, exponent - bits)
        if request.sensitivity.whole:
            grid = np.minimum(grid, 1.0)
        cost = float(np.where(scales > 0, grid / np.where(scales > 0, scales, 1.0), 0.0).sum())
        cost = 0.0 if request.sensitivity.unrounded(grid) else cost
        margin = ROUNDINGS_8192 + cost * (dim if scales.size == 1 else 1) / epsilon
        while margin < 0.5:
            law = cls(np.ceil(scales * (1 + margin) / grid), grid, dim)
            if law._loss(request.sensitivity).pure <= epsilon:
                return law
            margin *= 2
        raise DoesNotApplyError(f"epsilon = {epsilon:g} is too small for exact noise on a grid in dimension {dim}")


def _power_sum(steps: float, p: float) -> float:
    """sum_{k > 0} k^p e^(-k/steps), to a relative 1e-6 and better."""
    if steps == 0:
        return 0.0
    if steps > 1000:
        return float(math.gamma(p + 1) * steps ** (p + 1))
    k = np.arange(1, math.ceil((60 + 4 * p) * steps) + 1)
    return float((k**p * np.exp(-k / steps)).sum())
