"""Staircase noise on a grid: the optimal pure-DP law of one coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.noise.base import Law, confidence_level, of_order, registered
from shapedp.noise.grid import GridLaw
from shapedp.noise.request import DoesNotApplyError, Request, optimal_scales
from shapedp.numerics import sum_bounds
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8, BELOW_16, BELOW_8192, ROUNDINGS_8
from shapedp.numerics.simplex import least_between
from shapedp.privacy.losses import LaplaceLoss
from shapedp.sampling import Source, exponential_coins, geometric
from shapedp.sensitivity import L1, Box, Sensitivity

Integers = NDArray[np.int64]
UNITS = 2**30  # epsilons are multiples of 1/UNITS
_LANES = 1 << 15
_STEPS_BITS = 24
_LARGEST = 4096
_MOST = 2.0**20  # epsilons are counted in units of 2^-30 that must add up exactly


def radial_moments(dim: int, epsilon: float, gamma: float, power: float) -> tuple[float, float]:
    """(mass, E-sum) of r^(dim-1) and r^(dim-1+power) under the staircase of width 1 and height 1 at 0.

    Steps: height e^(-k epsilon) on [k, k + gamma) and e^(-(k+1) epsilon) on [k + gamma, k + 1), k = 0, 1, ...
    """
    k, height = _steps(dim, epsilon, power)
    return _moment(k, height, epsilon, gamma, dim - 1), _moment(k, height, epsilon, gamma, dim - 1 + power)


def _steps(dim: int, epsilon: float, power: float) -> tuple[Floats, Floats]:
    k = np.arange(max(math.ceil(steps_summed(dim, epsilon, power)), 64), dtype=np.float64)
    return k, np.exp(-epsilon * k)


def _moment(k: Floats, height: Floats, epsilon: float, gamma: float, q: float) -> float:
    middle = (k + gamma) ** (q + 1)
    inner, outer = middle - k ** (q + 1), (k + 1) ** (q + 1) - middle
    return float((height * (inner + math.exp(-epsilon) * outer)).sum()) / (q + 1)


def steps_summed(dim: int, epsilon: float, power: float) -> float:
    """How many steps of a staircase are summed one by one: what is left out is below any rounding."""
    return (50 + 3 * (power + dim)) / epsilon


def best_gamma(dim: int, epsilon: float, power: float) -> float:
    """The step fraction of least E |n|^power. Reference: Geng, Kairouz, Oh and Viswanath 2015, Theorem 1."""
    if dim == 1 and power == 1:
        return 1 / (1 + math.exp(epsilon / 2))
    k, height = _steps(dim, epsilon, power)

    def error(gamma: float) -> float:
        mass, total = (_moment(k, height, epsilon, gamma, dim - 1 + p) for p in (0.0, power))
        return total / mass

    return least_between(error, 0.0, 1.0, 1e-9)


@registered(family="staircase", every_measure=True)
@dataclass(frozen=True, eq=False, init=False)
class Staircase(GridLaw):
    """Independent coordinates n = k grid with P(k) ~ exp(-epsilon level), level = floor((|k| + width - inner)/width).

    `width`, `inner` (1 <= inner <= width) and `units` (epsilon = units/2^30) hold one integer per coordinate; the input
    is rounded to the grid, which the loss counts. Drawn in integer arithmetic: delta = 0 holds exactly.
    Guarantee: a shift of at most `width` grid steps changes no probability by more than e^epsilon.
    Reference: Geng and Viswanath 2016, Theorem 7 (integers) and Theorem 4 (reals, which a fine grid approaches).

    Example:
        >>> float(Staircase([1024], [300], [2**30], [2.0**-10]).scales[0])
        1.0
    """

    kind: ClassVar[str] = "staircase"
    phrase: ClassVar[str] = "staircase noise on a grid, drawn in integer arithmetic, independent in every coordinate"
    parameters: ClassVar[tuple[str, ...]] = ("width", "inner", "units", "grid")
    width: Floats
    inner: Floats
    units: Floats
    grid: Floats

    def __init__(self, width: ArrayLike, inner: ArrayLike, units: ArrayLike, grid: ArrayLike) -> None:
        self._fill(width=width, inner=inner, units=units, grid=grid)
        if not self.width.size == self.inner.size == self.units.size == self.grid.size:
            raise ValueError("width, inner, units and grid must have one entry per coordinate")
        if (self.inner > self.width).any() or (np.minimum(self.inner, self.units) < 1).any():
            raise ValueError("1 <= inner <= width and units >= 1 must hold in every coordinate")
        if (self.width * (800 * UNITS / self.units + 1) > 2.0**62).any():
            raise ValueError("width is too large beside units: draws beyond 800 units would leave 64-bit integers")

    @property
    def dim(self) -> int:  # type: ignore[override]
        return int(self.width.size)

    @property
    def scales(self) -> Floats:
        """The width of the steps."""
        return self.width * self.grid

    @property
    def epsilons(self) -> Floats:
        """What each coordinate spends per width."""
        return self.units / UNITS

    def _level(self, k: Floats) -> Floats:
        return np.floor((np.abs(k) + self.width - self.inner) / self.width)

    def log_density(self, x: Floats) -> Floats:
        """log of the probability of each grid point."""
        k = np.asarray(x, dtype=np.float64) / self.grid
        if (k != np.rint(k)).any():
            raise ValueError("x must lie on the grid")
        decay = np.exp(-self.epsilons)
        block = self.inner + decay * (self.width - self.inner)
        total = 2 * block / -np.expm1(-self.epsilons) - 1
        return np.asarray((-self.epsilons * self._level(k) - np.log(total)).sum(-1))

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """E |n|^p of the continuous staircase of the same width; the grid changes it by about 1/width."""
        table = {}
        keys = list(zip(self.epsilons.tolist(), (self.inner / self.width).tolist(), strict=True))
        for epsilon, gamma in set(keys):
            mass, total = radial_moments(1, epsilon, gamma, p)
            table[epsilon, gamma] = total / mass
        return np.asarray(np.array([table[key] for key in keys]) * self.scales**p)

    def variances(self) -> Floats:
        return self.absolute_moments(2.0)

    def half_widths(self, confidence: float) -> Floats:
        """c with P(|n_i| > c_i) <= 1 - confidence, to the next full step."""
        tail = 1 - confidence_level(confidence)
        return np.asarray(np.ceil(-math.log(tail) / self.epsilons + 1) * self.scales)

    def magnitude_levels(self, level: float) -> tuple[Floats, Floats]:
        """The first grid point at which the exact chance reaches the level, by bisection."""
        low, high = np.zeros(self.dim), np.ceil((40 / self.epsilons + 2) * self.width)
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            enough = self._chance(middle) >= level
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high * self.grid, self._chance(high)

    def _chance(self, c: Floats) -> Floats:
        """P(|k| <= c): level 0 holds inner points on either side, each further level width of them."""
        q = np.exp(-self.epsilons)
        level = self._level(c)
        full = self.width * (q - np.power(q, np.maximum(level, 1.0))) / (1 - q)
        last = np.power(q, level) * (c - (level - 1) * self.width - self.inner + 1)
        side = np.where(level > 0, self.inner - 1 + full + last, c)
        total = 2 * (self.inner + q * (self.width - self.inner)) / (1 - q) - 1
        return np.asarray((1 + 2 * side) / total)

    @property
    def steps_per_scale(self) -> Floats:
        return self.width

    def _draw(self, shape: tuple[int, ...], source: Source) -> Integers:
        lanes = [np.broadcast_to(array.astype(np.int64), shape) for array in (self.width, self.inner, self.units)]
        noise = np.empty(math.prod(shape), dtype=np.int64)
        for start in range(0, noise.size, _LANES):
            some = slice(start, start + _LANES)
            width, inner, units = (lane.flat[some] for lane in lanes)
            noise[some] = _draw(width, inner, units, source)
        return noise.reshape(shape)

    def _loss(self, sensitivity: Sensitivity) -> LaplaceLoss:
        """A coordinate that moves by s grid steps (one more if the input is rounded) crosses ceil(s/width) levels.

        Each coordinate is bounded on its own: exact for a box, generous for other sets.
        """
        bounds = sensitivity.profile if isinstance(sensitivity, Box) else _coordinate_bounds(sensitivity)
        if sensitivity.unrounded(self.grid):
            steps = np.floor(bounds * ABOVE_8) / self.grid
        else:
            steps = np.ceil(bounds / self.grid * ABOVE_8) + 1
        levels = np.where(sensitivity.fixed(), 0.0, np.ceil(steps / self.width))
        return LaplaceLoss(sum_bounds(levels * self.epsilons, ROUNDINGS_8)[1], continuous=False)

    @classmethod
    def fitted(cls, request: Request) -> Staircase:
        """epsilon is split as the Laplace mechanism's optimum splits it; each coordinate then takes its best steps."""
        bounds, power = _box_bounds(request.sensitivity), request.measure.power
        if request.measure.maximum:
            raise DoesNotApplyError("staircase noise minimises sums of |n|^p, not the worst coordinate")
        if (bounds == 0).any() or bounds.size > _LARGEST:
            raise DoesNotApplyError(f"staircase noise needs at most {_LARGEST} coordinates, each of sensitivity > 0")
        split = bounds / optimal_scales(bounds, request.plain_weights(), power, 1, request.epsilon)
        if not split.max() <= _MOST:
            raise DoesNotApplyError(f"epsilon is too large for staircase noise: at most {_MOST:g} per coordinate")
        units = np.floor(split * UNITS * BELOW_8192)
        if units.min() < 2**10:
            raise DoesNotApplyError("epsilon is too small for staircase noise: use laplace noise")
        grid = np.ldexp(1.0, np.frexp(bounds)[1] - _STEPS_BITS)
        width = np.ceil(bounds / grid * ABOVE_8) + 1
        table = {u: best_gamma(1, u / UNITS, power) for u in set(units.tolist())}
        fractions = np.array([table[u] for u in units.tolist()])
        inner = np.clip(np.rint(fractions * width), 1, width)
        while math.fsum(units) / UNITS > request.epsilon * BELOW_16:
            units = units - 1
        return cls(width, inner, units, grid)

    @classmethod
    def why(cls, request: Request, law: Law) -> str:
        return "each coordinate spends enough epsilon that steps as wide as its bound beat an exponential decay"


def _coordinate_bounds(sensitivity: Sensitivity) -> Floats:
    """The largest |v_i| of each coordinate over the set."""
    only = np.where(np.eye(sensitivity.dim, dtype=np.bool_), 1.0, np.inf)
    return np.array([sensitivity.l1_reach(scales)[1] for scales in only])


def _box_bounds(sensitivity: Sensitivity) -> Floats:
    """The profile of a box, or of an L1 ball of one coordinate."""
    if isinstance(sensitivity, Box):
        return sensitivity.profile
    if not isinstance(sensitivity, L1):
        raise DoesNotApplyError(f"staircase noise serves boxes, one coordinate at a time, not {sensitivity.kind!r}")
    if sensitivity.dim > 1:
        raise DoesNotApplyError("staircase noise on an L1 ball has no float-safe sampler beyond one coordinate")
    return np.array([sensitivity.radius])


def _draw(width: Integers, inner: Integers, units: Integers, source: Source) -> Integers:
    """Level by a geometric count, place in the step by rejection, sign by a bit; zero is kept once."""
    out = np.empty(width.size, dtype=np.int64)
    todo = np.arange(width.size)
    while todo.size:
        d, r, m = width[todo], inner[todo], units[todo]
        place = _uniform(d, source)
        far = place >= r
        far[far] = exponential_coins(m[far], UNITS, source)  # probability e^-epsilon
        level = geometric(UNITS, todo.size, source) // m
        negative = (source.words(todo.size) & np.uint64(1)).astype(np.bool_)
        value = level * d + place
        good = ((place < r) | far) & ~(negative & (value == 0))
        out[todo[good]] = np.where(negative, -value, value)[good]
        todo = todo[~good]
    return out


def _uniform(bound: Integers, source: Source) -> Integers:
    """One uniform integer of [0, bound) per lane, by rejection."""
    limit = np.uint64(2**63) // bound.astype(np.uint64) * bound.astype(np.uint64)
    words = source.words(bound.size) >> np.uint64(1)
    again = np.flatnonzero(words >= limit)
    while again.size:
        words[again] = source.words(again.size) >> np.uint64(1)
        again = again[words[again] >= limit[again]]
    return np.asarray((words % bound.astype(np.uint64)).astype(np.int64))
