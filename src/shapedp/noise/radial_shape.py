"""The best shape of spherical noise: a search from a table of optima. Nothing found here is trusted."""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from shapedp.noise.request import DoesNotApplyError
from shapedp.numerics.arrays import Floats
from shapedp.numerics.excess_guide import SLOPE
from shapedp.numerics.radius import RadiusRule
from shapedp.numerics.simplex import least
from shapedp.privacy.losses import GaussianLoss, RadialLoss

Shape = tuple[float, float]
Progress = Callable[[int, Shape, float], None]
Point = tuple[float, float]  # sqrt(1 - a/dim) and log b
EVALUATIONS = 70
SECONDS = 300.0  # of the search; a tenth of a second is usual
TABLE = "radial_shapes.toml"
_LOWEST, _HIGHEST = (0.0, -2.0), (math.sqrt(0.95), 2.5)
_UNKNOWN = ((0.1, 0.2), (0.3, 0.25), (0.1, 0.5))  # where a search begins without a table
_AROUND = 0.1
_NEAR = 3e-3
_SEEN = 6
_ALIKE = 1e-5  # of the error: exp(-r) is preferred to a shape that gains no more


@dataclass(frozen=True, eq=False)
class Optima:
    """Best shapes as points at every (dim, epsilon, delta) of a grid; between them linear in the logarithms."""

    axes: tuple[Floats, Floats, Floats]
    points: Floats

    @classmethod
    def of(cls, data: dict[str, Any]) -> Optima:
        """From the fields of the table. ValueError where it holds no such grid."""
        axes = tuple(np.log(np.array(data[name], dtype=np.float64)) for name in ("dims", "epsilons", "deltas"))
        points = np.array(data["points"], dtype=np.float64)
        if not all(one.ndim == 1 and one.size > 1 and (np.diff(one) > 0).all() for one in axes):
            raise ValueError("the grid must ascend")
        if points.shape != (math.prod(one.size for one in axes), 2) or not np.isfinite(points).all():
            raise ValueError("one point is expected for each place of the grid")
        points = np.clip(points, _LOWEST, _HIGHEST).reshape(*(one.size for one in axes), 2)
        return cls((axes[0], axes[1], axes[2]), points)

    def at(self, dim: int, epsilon: float, delta: float) -> Point:
        """The point of the table at a claim, or at the claim of the table next to it."""
        found = self.points
        for axis, value in zip(self.axes, (dim, epsilon, delta), strict=True):
            x = min(max(math.log(value), float(axis[0])), float(axis[-1]))
            cell = min(max(int(np.searchsorted(axis, x)) - 1, 0), axis.size - 2)
            share = (x - axis[cell]) / (axis[cell + 1] - axis[cell])
            found = (1 - share) * found[cell] + share * found[cell + 1]
        return float(found[0]), float(found[1])


@cache
def optima() -> Optima | None:
    """The table that is shipped; None where it cannot be read, which costs time only."""
    try:
        return Optima.of(tomllib.loads((files("shapedp.noise") / TABLE).read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def best_shape(dim: int, epsilon: float, delta: float, *, progress: Progress | None = None) -> Shape:
    """(a, b) of the generalised gamma law with the least E R^2 that meets (epsilon, delta).

    A simplex search from the table's point. Nothing it finds is trusted: the law is calibrated and certified afterwards
    by its exact profile, so that a wrong entry costs time or a little error.
    """
    if delta == 0:
        return float(dim), 1.0
    table = optima()
    return searched(dim, epsilon, delta, None if table is None else table.at(dim, epsilon, delta), progress)


def searched(
    dim: int,
    epsilon: float,
    delta: float,
    start: Point | None,
    progress: Progress | None = None,
    *,
    close: float = 1e-5,
    most: int = EVALUATIONS,
) -> Shape:
    """The best shape by a search from `start`, close in the log of the error."""
    search = _Search(dim, epsilon, delta, progress)
    u, v = start or (0.0, 0.0)
    near = ((u, v), (u + _AROUND * u + _NEAR, v), (u, v + _AROUND * v + _NEAR))
    simplex = np.array(_UNKNOWN if start is None else near)
    least(search.cost, simplex, near=200 * close, close=close, most=most)
    value, shape = search.best
    pure = search.cost((0.0, 0.0))
    return (float(dim), 1.0) if pure <= value + _ALIKE else shape


class _Search:
    """log of E R^2 over the Gaussian's, as points ask for it, and the best so far."""

    def __init__(self, dim: int, epsilon: float, delta: float, progress: Progress | None) -> None:
        self.dim, self.epsilon, self.delta, self.progress = dim, epsilon, delta, progress
        self.best: tuple[float, Shape] = (0.0, (float(dim), 2.0))
        self._log_mu = math.log(GaussianLoss.calibrate(epsilon, delta).mu)
        self._roots: list[tuple[float, ...]] = []
        self._slope = SLOPE
        self._deadline = time.monotonic() + SECONDS
        self._done = 0

    def _start(self, u: float, v: float, size: float) -> float | None:
        """Where the ratio of a shape may be, linear in what the last shapes needed; `size` is the log of its radius."""
        if not self._roots:
            return None
        seen = np.array(self._roots[-_SEEN:])
        guess, least, most = self._roots[-1][-1], float(seen[:, 3].min()), float(seen[:, 3].max())
        if len(seen) > 3:
            solved = np.linalg.lstsq(seen[:, :3], seen[:, 3], rcond=1e-9)[0]
            guess = min(max(float(solved @ (1.0, u * u, v)), 2 * least - most), 2 * most - least)
        return math.exp(guess + size)

    def cost(self, point: Sequence[float] | Floats) -> float:
        if time.monotonic() > self._deadline:
            raise DoesNotApplyError(f"no best shape was found within {SECONDS:g} s: fix one with shape=(a, b)")
        u, v = min(abs(float(point[0])), _HIGHEST[0]), min(max(float(point[1]), _LOWEST[1]), _HIGHEST[1])
        a, b = self.dim * (1 - u * u), math.exp(v)
        try:
            start = self._start(u, v, math.log(a / b) / b)
            found = RadialLoss.estimated(self.dim, a, b, self.epsilon, self.delta, start=start, slope=self._slope)
        except ArithmeticError:
            return 50.0
        log_ratio, self._slope = found
        self._roots.append((1.0, u * u, v, log_ratio - math.log(a / b) / b))
        value = 2 / b * math.log(a / b) + math.log1p(RadiusRule(a, b).mean_excess(2.0))
        value += 2 * (self._log_mu - log_ratio) - math.log(self.dim)
        self.best = min(self.best, (value, (a, b)))
        self._done += 1
        if self.progress is not None:
            self.progress(self._done, self.best[1], math.exp(self.best[0]))
        return value
