"""What a law implies about its draws, in the form of events of known probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.noise import DiscreteLaplace, Gaussian, Laplace, Law
from shapedp.sampling import grid_for

Floats = NDArray[np.float64]
Chances = tuple[Floats, Floats]

LEVELS = np.concatenate([np.arange(1, 20) / 20, [0.99, 0.999]])


@dataclass(frozen=True)
class Shape:
    """`independent` coordinates; `isotropic` after division by the scales; the `grid` draws lie on, if any."""

    independent: bool
    isotropic: bool
    grid: Floats | None
    parity: bool = True


@singledispatch
def shape_of(law: Law) -> Shape:
    """Symmetric noise of which nothing else is known."""
    return Shape(False, False, None)


@shape_of.register
def _(law: Gaussian) -> Shape:
    return Shape(True, True, grid_for(law.scales))


@shape_of.register
def _(law: Laplace) -> Shape:
    return Shape(True, False, grid_for(law.scales))


@shape_of.register
def _(law: DiscreteLaplace) -> Shape:
    return Shape(True, False, law.grid, parity=bool(law.steps.min() > 1000))


@singledispatch
def magnitude_levels(law: Law, level: float) -> Chances:
    """Widths c and chances p with P(|n_i| <= c_i) = p_i; rounding to a grid may move p by 1e-5."""
    return law.half_widths(level), np.array([level])


@magnitude_levels.register
def _(law: DiscreteLaplace, level: float) -> Chances:
    widths = law.half_widths(level)
    with np.errstate(divide="ignore"):
        q = np.exp(-1 / law.steps)
    return widths, 1 - 2 * np.power(q, widths / law.grid + 1) / (1 + q)


@singledispatch
def radius_levels(law: Law, level: float) -> float | None:
    """r with P(|n/scales|_2 <= r) = level, where it is known."""
    return None


@radius_levels.register
def _(law: Gaussian, level: float) -> float | None:
    return float(np.sqrt(2 * special.gammaincinv(law.dim / 2, level)))


def cosine_level(dim: int, level: float) -> float:
    """x with P(|cos(angle to a fixed line)| <= x) = level for a uniform direction in R^dim, dim >= 2."""
    return float(np.sqrt(special.betaincinv(0.5, (dim - 1) / 2, level)))
