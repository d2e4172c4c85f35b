"""Quick estimates of the excess of a radial density over its translate: for searches, never for a certificate."""

from __future__ import annotations

import math

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.excess import ShiftExcess
from shapedp.numerics.gammatail import deviance, log_radii
from shapedp.numerics.quadrature import legendre
from shapedp.numerics.roots import SearchError

_PANELS = 24
_POINTS = 8
_SPARE = 18.0  # what the radius adds beyond e^-_SPARE of delta is left out
_POLISH = 5
_CLOSE = 1e-6
_SETTLED = 1e-5
_DEAD = 1e-6  # of delta: below it the shift is too short, and no more is asked
_STEPS = 60
_FARTHEST = 690.0
_STEP = 0.5  # the longest in the log of the shift
_FIRST = 0.01
SLOPE = 4.0  # of log H in log shift, where nothing is known


class ShiftGuide(ShiftExcess):
    """The integral of `ShiftExcess` at one level by a fixed rule, for one shift after another; nothing is proved.

    The two caps end where |c1| = 1: panels end there too, and t -> (3 t - t^3)/2 smooths the roots at their ends.
    """

    def __init__(self, dim: int, a: float, b: float, level: float, delta: float) -> None:
        super().__init__(dim, a, b, 1.0)
        self.level = level
        depth = math.sqrt(max(-math.log(delta), 0.0) + _SPARE)
        self._grid = log_radii(self.k, np.linspace(-depth, depth, _PANELS + 1))
        t, w = legendre(_POINTS)
        self._nodes, self._weights = (3 * t - t**3) / 2, w * 1.5 * (1 - t * t)

    def at(self, shift: float) -> float:
        """About H(level) for a shift of this length."""
        self._log_d = math.log(shift) - math.log(self.k) / self.b
        with np.errstate(all="ignore"):
            edges = self._edges_at()
            half, centre = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
            z = (centre + half * self._nodes).ravel()
            value = self._integrand(z).reshape(half.size, -1)
            return float((half[:, 0] * (value @ self._weights)).sum())

    def root(self, delta: float, start: float, slope: float = SLOPE) -> tuple[float, float]:
        """The log of the shift at which H(level) is about delta, and d log H/d log shift there.

        Secants from a start and a slope, within what is known to be too short and too long. SearchError finds none.
        """
        goal, least = math.log(delta), math.log(_DEAD)
        low, high = -math.inf, math.inf
        x, step = start, _FIRST
        known: tuple[float, float] | None = None
        measured = False
        for _ in range(_STEPS):
            if not abs(x) < _FARTHEST:
                break
            value = max(math.log(max(self.at(math.exp(x)), 1e-320)) - goal, least)
            low, high = (max(low, x), high) if value < 0 else (low, min(high, x))
            if known is not None and value > least and known[1] > least and known[0] != x:
                found = (value - known[1]) / (x - known[0])
                slope, measured = (found, True) if found > 0 else (slope, False)
            known = (x, value)
            if value > least:
                move = min(max(-value / slope, -_STEP), _STEP)
            else:
                move, step = step, 2 * step
            if abs(move) <= _CLOSE and (measured or abs(value) <= _SETTLED):
                return x + move, slope
            x = x + move if low < x + move < high or math.isinf(high - low) else (low + high) / 2
        raise SearchError(f"no shift was found that has delta {delta:g}")

    def _c1(self, z: Floats) -> Floats:
        return self._triangle(z, np.full_like(z, self.level)).c1

    def _edges_at(self) -> Floats:
        """The grid, and between its points those at which c1 passes -1 or 1."""
        z, c1 = self._grid, self._c1(self._grid)
        side = (c1 > 1).astype(np.int8) - (c1 < -1)
        cells = np.flatnonzero(np.diff(side))
        if not cells.size:
            return z
        goal = np.where(np.maximum(side[cells], side[cells + 1]) == 1, 1.0, -1.0)
        both = np.abs(side[cells] - side[cells + 1]) == 2
        cells, goal = np.concatenate([cells, cells[both]]), np.concatenate([goal, np.full(both.sum(), -1.0)])
        low, high, goal = z[cells], z[cells + 1], np.arcsinh(goal)
        at_low, at_high = np.arcsinh(c1[cells]) - goal, np.arcsinh(c1[cells + 1]) - goal
        before = np.zeros(goal.size)
        for _ in range(_POLISH):  # Illinois; the logs of the two parts of c1 are nearly linear in z
            middle = np.clip(low - at_low * (high - low) / (at_high - at_low), low, high)
            at = np.arcsinh(self._c1(middle)) - goal
            left = np.sign(at) == np.sign(at_low)
            turn = np.where(left, 1.0, -1.0)
            again = np.where(turn == before, 0.5, 1.0)
            low, high = np.where(left, middle, low), np.where(left, high, middle)
            at_low, at_high = np.where(left, at, again * at_low), np.where(left, again * at_high, at)
            before = turn
        return np.sort(np.concatenate([z, np.where(np.isfinite(middle), middle, z[cells])]))

    def _integrand(self, z: Floats) -> Floats:
        """As in `ShiftExcess`, without its error."""
        at = self._triangle(z, np.full_like(z, self.level))
        log_f = self._log_peak - self.k * deviance(z)
        inside = np.abs(at.c1) < 1
        size1 = np.where(inside, np.abs(at.c1), 0.0)
        size2 = np.where(inside, np.minimum(at.c2, 1 - 1e-15), 0.0)
        log_w = self._cap.log_weight(size1)
        grown = self.b * np.exp(z + math.log(self.k) + self.b * at.eta)
        log_kappa = at.eta + np.log((self.slack + self.b * at.y) / (self.slack + grown))
        caps = self._cap.scaled(np.concatenate([size1, size2]))
        f, weighted = np.exp(log_f), np.exp(log_f + log_w)
        first = np.where(at.c1 >= 0, weighted * caps[: z.size], f - weighted * caps[: z.size])
        second = np.exp(log_f + log_w + log_kappa) * caps[z.size :]
        return np.where(inside, first - second, np.where(at.c1 < 0, f, 0.0))
