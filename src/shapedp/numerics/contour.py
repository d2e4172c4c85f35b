"""Hockey sticks of sums of chi-squares and a normal, by the trapezoidal rule on a vertical contour.

For L with moment generating function M(s) = E e^(s L) and any c > 0 inside its strip

    E[(1 - e^(eps - L))_+] = 1/(2 pi) integral over real y of M(s) e^(-s eps)/(s (s + 1)), s = c + i y.

At the saddle the integrand neither cancels nor decays slowly; the trapezoidal rule then converges geometrically.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.arrays import Floats
from shapedp.numerics.chisquare import groups
from shapedp.numerics.outward import BELOW_8192, UNIT

_TINY = 1e-315
_GOAL = 36.0  # aliasing and truncation are held below about e^-30 of the value
_CELLS = 1 << 20
_MOST_NODES = 1 << 18
_SHARES = np.array([0.25, 0.5, 0.75, 0.9])


@dataclass(frozen=True)
class QuadraticSum:
    """L = shift + sum_j a_j Z_j/2 + N(mu^2/2, mu^2), the Z_j independent chi-squares with k degrees.

    log M(s) = s shift - (k/2) sum_j log(1 - a_j s) + mu^2 s (s + 1)/2, for s below 1/max(a_j).
    """

    k: int
    a: tuple[float, ...]
    shift: float = 0.0
    mu: float = 0.0

    @property
    def pole(self) -> float:
        """Where M ends."""
        top = max(self.a, default=0.0)
        return 1 / top * BELOW_8192 if top > 0 else math.inf

    def log_moment(self, s: Floats) -> Floats:
        """log M(s) at real s in (0, pole)."""
        logs = sum((np.log1p(-a * s) for a in self.a), np.zeros_like(s))
        return s * self.shift - self.k / 2 * logs + self.mu**2 * s * (s + 1) / 2

    def _slope(self, s: Floats) -> Floats:
        terms = sum((a / (1 - a * s) for a in self.a), np.zeros_like(s))
        return self.shift + self.k / 2 * terms + self.mu**2 * (s + 0.5)

    def _curvature(self, s: Floats) -> Floats:
        terms = sum((np.square(a / (1 - a * s)) for a in self.a), np.zeros_like(s))
        return self.k / 2 * terms + self.mu**2

    def saddle(self, epsilon: Floats) -> Floats:
        """A c near the least value of M(c) e^(-c eps)/(c (c + 1)), which is convex in log; any c is valid."""
        low, high = np.full_like(epsilon, -60.0), np.full_like(epsilon, 60.0 if math.isinf(self.pole) else 25.0)
        for _ in range(17):
            middle = (low + high) / 2
            s = self._place(middle)
            rising = self._slope(s) - epsilon - 1 / s - 1 / (s + 1) > 0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        return self._place((low + high) / 2)

    def _place(self, v: Floats) -> Floats:
        return np.exp(v) if math.isinf(self.pole) else self.pole / (1 + np.exp(-v))

    def hockey_stick(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Bounds on E[(1 - e^(eps - L))_+] at each eps >= 0.

        Guarantee: lower <= truth <= upper. Aliasing: the sum with step h differs from the integral by at most
        B(c - a)/(e^(2 pi a/h) - 1) + B(c + b)/(e^(2 pi b/h) - 1), B(s) = M(s) e^(-s eps) pi/sqrt(s (s + 1)), for any
        shifts a < c, b < pole - c (Trefethen and Weideman 2014, Theorem 5.1; |M(s + i y)| <= M(s) and
        Cauchy-Schwarz). Truncation: beyond Y the magnitude is at most that at Y times (1 + (c+1)^2/Y^2) Y^2/y^2.
        Rounding: of every magnitude and phase, and of the factor M(c) e^(-c eps).
        """
        epsilon = np.asarray(epsilon, dtype=np.float64)
        shape, epsilon = epsilon.shape, epsilon.ravel()
        lower, upper = np.empty_like(epsilon), np.empty_like(epsilon)
        c = self.saddle(epsilon)
        top = self.log_moment(c) - c * epsilon - np.log(c) - np.log1p(c)
        width = 1 / np.sqrt(self._curvature(c) + 1 / c**2 + 1 / (c + 1) ** 2)
        step, alias = self._step(epsilon, c, top, width)
        nodes = self._nodes(c, width, step)
        for at in groups(nodes, _CELLS):
            total, error = self._sum(epsilon[at], c[at], step[at], int(nodes[at].max()))
            error += alias[at]
            log_error = self._log_error(epsilon[at], c[at])
            scale = np.exp(np.minimum(top[at] + np.log(step[at] / (2 * math.pi)), 700.0))
            lower[at] = np.maximum(scale * (total - error) * (1 - log_error) - _TINY, 0.0)
            upper[at] = np.minimum(scale * (total + error) * (1 + 2 * log_error) + _TINY, 1.0)
        unsure = ~(np.isfinite(lower) & np.isfinite(upper)) | (lower > upper)
        lower[unsure], upper[unsure] = 0.0, 1.0
        return lower.reshape(shape), upper.reshape(shape)

    def _log_error(self, epsilon: Floats, c: Floats) -> Floats:
        """A bound on the rounding of log(M(c) e^(-c eps)/(c (c + 1))): a_j known to 4 units."""
        error = 8 * (c * (epsilon + abs(self.shift) + self.mu**2 * (c + 1)) + np.abs(np.log(c)) + 4)
        for a in self.a:
            kept = 1 - a * c
            error = error + self.k / 2 * 8 * (np.abs(np.log1p(-a * c)) + abs(a) * c * (1 + 1 / kept))
        return error * UNIT

    def _step(self, epsilon: Floats, c: Floats, top: Floats, width: Floats) -> tuple[Floats, Floats]:
        """A step whose aliasing is small, and the bound on it in units of the sum's terms."""
        room = np.minimum(self.pole - c, 4 * c + 4 * width)
        shifts = np.concatenate([-_SHARES[:, None] * c, _SHARES[:, None] * room])
        s = c + shifts
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bound = self.log_moment(s) - s * epsilon - 0.5 * np.log(s * (s + 1)) + math.log(math.pi) - top
            bound = np.where(np.isfinite(bound), bound, np.inf)
            steps = 2 * math.pi * np.abs(shifts) / np.maximum(bound - np.log(width) + _GOAL, 4.0)
        half = _SHARES.size
        step = np.minimum(steps[:half].max(axis=0), steps[half:].max(axis=0))
        with np.errstate(over="ignore"):
            turns = 2 * math.pi * np.abs(shifts) / step
            each = bound - turns - np.log1p(-np.exp(-np.maximum(turns, 1e-9)))
            error = np.exp(each[:half].min(axis=0)) + np.exp(each[half:].min(axis=0))
        return step, error * 1.001 / step

    def _log_size(self, c: Floats, y: Floats) -> Floats:
        """log of the integrand's magnitude at y relative to y = 0."""
        size = -0.5 * (self.mu * y) ** 2 - 0.5 * np.log1p((y / c) ** 2) - 0.5 * np.log1p((y / (c + 1)) ** 2)
        for a in self.a:
            size = size - self.k / 4 * np.log1p((y * (a / (1 - a * c))) ** 2)
        return np.asarray(size)

    def _nodes(self, c: Floats, width: Floats, step: Floats) -> NDArray[np.int64]:
        """How many nodes reach a Y beyond which e^-26 of the integral is left, or what remains of the limit."""
        y = np.maximum(8 * width, 2 * step)
        for _ in range(120):
            left = self._log_size(c, y) + np.log(2 * np.maximum(y, c + 1) / width)
            open_ = (left > -26.0) & (y / step < _MOST_NODES)
            if not open_.any():
                break
            y = np.where(open_, 1.25 * y, y)
        return np.minimum(np.ceil(y / step), _MOST_NODES).astype(np.int64) + 1

    def _sum(self, epsilon: Floats, c: Floats, step: Floats, n: int) -> tuple[Floats, Floats]:
        """1 + 2 sum over nodes 1..n, and a bound on its rounding and on what lies beyond."""
        total, error = np.ones_like(c), np.full_like(c, 64 * UNIT)
        block = max(1, _CELLS // c.size)
        base, rate = c[:, None], (self.shift - epsilon)[:, None] + self.mu**2 * (c[:, None] + 0.5)
        spin = (epsilon + abs(self.shift))[:, None] + self.mu**2 * (base + 0.5)
        for start in range(1, n + 1, block):
            y = np.arange(start, min(start + block, n + 1), dtype=np.float64) * step[:, None]
            size = -0.5 * (self.mu * y) ** 2 - 0.5 * np.log1p((y / base) ** 2) - 0.5 * np.log1p((y / (base + 1)) ** 2)
            phase = y * rate - np.arctan(y / base) - np.arctan(y / (base + 1))
            doubt = 16 + 4 * y * spin + np.abs(size)
            for a in self.a:
                b = a / (1 - a * base)
                angle, fall = np.arctan(y * b), np.log1p((y * b) ** 2)
                size -= self.k / 4 * fall
                phase += self.k / 2 * angle
                known = 8 + 4 * abs(a) * base / (1 - a * base)
                doubt += self.k / 2 * known * (np.abs(y * b) / (1 + (y * b) ** 2) + np.abs(angle) + fall)
            magnitude = 2 * np.exp(size)
            total += (magnitude * np.cos(phase)).sum(axis=1)
            error += (magnitude * np.minimum(doubt * (2 * UNIT), 2.0)).sum(axis=1) + 64 * UNIT * magnitude.sum(axis=1)
        end = n * step
        # for y >= Y: (c^2 + Y^2)/(c^2 + y^2) <= (1 + c^2/Y^2) (Y/y)^2, and likewise for c + 1
        spread = np.sqrt((1 + (c / end) ** 2) * (1 + ((c + 1) / end) ** 2))
        beyond = 2 * np.exp(self._log_size(c, end)) * spread * end / step
        return total, error + beyond * 1.001
