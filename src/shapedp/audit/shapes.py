"""What a law implies about its draws, in the form of events of known probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.noise import DiscreteLaplace, Gaussian, L1Staircase, Laplace, Law, Mixed, Staircase, TensorGaussian
from shapedp.sampling import grid_for

Floats = NDArray[np.float64]
Chances = tuple[Floats, Floats]

LEVELS = np.concatenate([np.arange(1, 20) / 20, [0.99, 0.999]])


@dataclass(frozen=True)
class Shape:
    """What may be counted: `independent` coordinates; signs that are `fair` coins of their own given the magnitudes;
    `isotropic` after division by the scales; the `grid` draws lie on, and whether it is fine enough for `parity`;
    `widths` that are exact."""

    independent: bool = False
    fair: bool = False
    isotropic: bool = False
    grid: Floats | None = None
    parity: bool = True
    widths: bool = True


@singledispatch
def shape_of(law: Law) -> Shape:
    """Symmetric noise; spherical where the law knows the quantiles of its radius."""
    if not hasattr(law, "radius_quantile"):
        return Shape()
    grid = getattr(law, "grid", None)
    return Shape(False, True, True, None if grid is None else np.atleast_1d(grid))


@shape_of.register
def _(law: Gaussian) -> Shape:
    return Shape(True, True, True, grid_for(law.scales))


@shape_of.register
def _(law: Laplace) -> Shape:
    return Shape(True, True, False, grid_for(law.scales))


@shape_of.register
def _(law: Mixed) -> Shape:
    return Shape(True, True, False, grid_for(law.scales))


@shape_of.register
def _(law: DiscreteLaplace) -> Shape:
    return Shape(True, True, False, law.grid, parity=bool(law.steps.min() > 1000))


@shape_of.register
def _(law: Staircase) -> Shape:
    return Shape(True, True, False, law.grid, parity=bool(law.width.min() > 1000))


@shape_of.register
def _(law: L1Staircase) -> Shape:
    return Shape(False, True, False, widths=False)


@singledispatch
def whitened(law: Law, noise: Floats) -> tuple[Law, Floats]:
    """The law and its draws, turned where that makes coordinates independent."""
    return law, noise


@whitened.register
def _(law: TensorGaussian, noise: Floats) -> tuple[Law, Floats]:
    if any(mode.singular for mode in law.modes):
        return law, noise
    return Gaussian(1.0, law.dim), law.whiten(noise).reshape(noise.shape)


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


@magnitude_levels.register
def _(law: Staircase, level: float) -> Chances:
    """The first grid point at which the exact chance reaches the level, by bisection."""
    low, high = np.zeros(law.dim), np.ceil((40 / law.epsilons + 2) * law.width)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        enough = _staircase_chance(law, middle) >= level
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high * law.grid, _staircase_chance(law, high)


def _staircase_chance(law: Staircase, c: Floats) -> Floats:
    """P(|k| <= c): level 0 holds inner points on either side, each further level width of them."""
    q = np.exp(-law.epsilons)
    level = np.floor((c + law.width - law.inner) / law.width)
    full = law.width * (q - np.power(q, np.maximum(level, 1.0))) / (1 - q)
    last = np.power(q, level) * (c - (level - 1) * law.width - law.inner + 1)
    side = np.where(level > 0, law.inner - 1 + full + last, c)
    total = 2 * (law.inner + q * (law.width - law.inner)) / (1 - q) - 1
    return np.asarray((1 + 2 * side) / total)


@singledispatch
def radius_level(law: Law, level: float) -> float | None:
    """r with P(|n/scales|_2 <= r) = level, scales the standard deviations, where it is known."""
    if not hasattr(law, "radius_quantile"):
        return None
    return float(law.radius_quantile(np.array([level]))[0] / law.marginal_scales()[0])


@radius_level.register
def _(law: Gaussian, level: float) -> float | None:
    return float(np.sqrt(2 * special.gammaincinv(law.dim / 2, level)))


def cosine_level(dim: int, level: float) -> float:
    """x with P(|cos(angle to a fixed line)| <= x) = level for a uniform direction in R^dim, dim >= 2."""
    return float(np.sqrt(special.betaincinv(0.5, (dim - 1) / 2, level)))
