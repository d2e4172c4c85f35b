"""Staircase noise: the optimal pure-DP law of one coordinate, on a grid, and its l1-radial form in several."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.documents import decode, described, encode
from shapedp.noise.base import Floats, Law, confidence_level, of_order
from shapedp.numerics.arrays import frozen
from shapedp.numerics.checks import numeric, positive, size, vector
from shapedp.sampling import Source, exponential_coins, geometric

UNITS = 2**30  # epsilons are multiples of 1/UNITS
_REACH = 2.0**62
_LANES = 1 << 15


def radial_moments(dim: int, epsilon: float, gamma: float, power: float) -> tuple[float, float]:
    """(mass, E-sum) of r^(dim-1) and r^(dim-1+power) under the staircase of width 1 and height 1 at 0.

    Steps: height e^(-k epsilon) on [k, k + gamma) and e^(-(k+1) epsilon) on [k + gamma, k + 1), k = 0, 1, ...
    """
    k = np.arange(max(math.ceil((50 + 3 * (power + dim)) / epsilon), 64), dtype=np.float64)
    height = np.exp(-epsilon * k)
    low = math.exp(-epsilon)

    def moment(q: float) -> float:
        inner = (k + gamma) ** (q + 1) - k ** (q + 1)
        outer = (k + 1) ** (q + 1) - (k + gamma) ** (q + 1)
        return float((height * (inner + low * outer)).sum()) / (q + 1)

    return moment(dim - 1), moment(dim - 1 + power)


def best_gamma(dim: int, epsilon: float, power: float) -> float:
    """The step fraction of least E |n|^power. Reference: Geng, Kairouz, Oh and Viswanath 2015, Theorem 1."""
    if dim == 1 and power == 1:
        return 1 / (1 + math.exp(epsilon / 2))

    def error(gamma: float) -> float:
        mass, total = radial_moments(dim, epsilon, gamma, power)
        return total / mass

    from scipy import optimize  # slow to import

    return float(optimize.minimize_scalar(error, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).x)


@dataclass(frozen=True, eq=False, init=False)
class Staircase(Law):
    """Independent coordinates n = k grid with P(k) ~ exp(-epsilon level), level = floor((|k| + width - inner)/width).

    `width`, `inner` (1 <= inner <= width) and `units` (epsilon = units/2^30) hold one integer per coordinate; the input
    is rounded to the grid, which the loss counts. Drawn in integer arithmetic: delta = 0 holds exactly.
    Guarantee: a shift of at most `width` grid steps changes no probability by more than e^epsilon.
    Reference: Geng and Viswanath 2016, Theorem 7 (integers) and Theorem 4 (reals, which a fine grid approaches).
    """

    kind: ClassVar[str] = "staircase"
    width: Floats
    inner: Floats
    units: Floats
    grid: Floats

    def __init__(self, width: ArrayLike, inner: ArrayLike, units: ArrayLike, grid: ArrayLike) -> None:
        given = {"width": width, "inner": inner, "units": units, "grid": grid}
        arrays = {name: vector(name, np.atleast_1d(numeric(name, value)), least=0.0) for name, value in given.items()}
        if len({array.size for array in arrays.values()}) != 1:
            raise ValueError("width, inner, units and grid must have one entry per coordinate")
        for name in ("width", "inner", "units"):
            if (arrays[name] != np.rint(arrays[name])).any() or arrays[name].max() > 2**50:
                raise ValueError(f"{name} must hold whole numbers of at most 2^50")
        if (arrays["inner"] > arrays["width"]).any() or (np.minimum(arrays["inner"], arrays["units"]) < 1).any():
            raise ValueError("1 <= inner <= width and units >= 1 must hold in every coordinate")
        if (arrays["width"] * (800 * UNITS / arrays["units"] + 1) > 2.0**62).any():
            raise ValueError(
                "width is too large beside units: draws beyond 800 units of decay would leave 64-bit integers"
            )
        if (np.frexp(arrays["grid"])[0] != 0.5).any():
            raise ValueError("grid must hold powers of two")
        for name, array in arrays.items():
            object.__setattr__(self, name, frozen(array))

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

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        x = numeric("x", x)
        multiple = np.asarray(x, dtype=np.float64) / self.grid
        if not (np.abs(multiple) < _REACH).all():
            raise ValueError("x must be finite and below 2^62 grid steps of the mechanism")
        shape = x.shape
        lanes = [
            np.broadcast_to(array, shape).reshape(-1).astype(np.int64) for array in (self.width, self.inner, self.units)
        ]
        noise = np.empty(x.size, dtype=np.int64)
        for start in range(0, x.size, _LANES):
            width, inner, units = (lane[start : start + _LANES] for lane in lanes)
            noise[start : start + _LANES] = _draw(width, inner, units, source)
        total = (np.rint(multiple).astype(np.int64) + noise.reshape(shape)).astype(np.float64) * self.grid
        return total.astype(np.float32 if x.dtype == np.float32 else np.float64)

    def to_json(self) -> dict[str, Any]:
        names = ("width", "inner", "units", "grid")
        return {"law": self.kind, **{name: encode(getattr(self, name)) for name in names}}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> Staircase:
        """What `to_json` wrote."""
        return cls(*(decode(name, data[name]) for name in ("width", "inner", "units", "grid")))


def _draw(
    width: NDArray[np.int64], inner: NDArray[np.int64], units: NDArray[np.int64], source: Source
) -> NDArray[np.int64]:
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


def _uniform(bound: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
    """One uniform integer of [0, bound) per lane, by rejection."""
    limit = np.uint64(2**63) // bound.astype(np.uint64) * bound.astype(np.uint64)
    words = source.words(bound.size) >> np.uint64(1)
    again = np.flatnonzero(words >= limit)
    while again.size:
        words[again] = source.words(again.size) >> np.uint64(1)
        again = again[words[again] >= limit[again]]
    return np.asarray((words % bound.astype(np.uint64)).astype(np.int64))


@dataclass(frozen=True, eq=False, init=False)
class L1Staircase(Law):
    """Density constant on l1 shells: height e^(-k epsilon) on k <= |x|_1/width < k + gamma, lower by e^epsilon beyond.

    Guarantee: (epsilon, 0)-DP for an L1 sensitivity of `width`; least E |n|_1 in dimensions 1 and 2.
    A baseline: it is drawn in simulations only (`rng=`), no float-safe sampler is known for it.
    Reference: Geng, Kairouz, Oh and Viswanath 2015, Theorem 1.
    """

    kind: ClassVar[str] = "l1-staircase"
    width: float
    epsilon: float
    dim: int
    gamma: float

    def __init__(self, width: float, epsilon: float, dim: int, *, gamma: float | None = None) -> None:
        object.__setattr__(self, "width", positive("width", width))
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "dim", size("dim", dim))
        fraction = best_gamma(dim, self.epsilon, 1.0) if gamma is None else gamma
        if not 0 <= fraction <= 1:
            raise ValueError(f"gamma must lie in [0, 1], got {gamma!r}")
        object.__setattr__(self, "gamma", float(fraction))

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
            raise ValueError(
                "l1 staircase noise has no float-safe sampler: use laplace noise, or pass rng= to simulate"
            )
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

    def to_json(self) -> dict[str, Any]:
        return {"law": self.kind, "width": self.width, "epsilon": self.epsilon, "dim": self.dim, "gamma": self.gamma}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> L1Staircase:
        """What `to_json` wrote."""
        return cls(data["width"], data["epsilon"], data["dim"], gamma=data["gamma"])
