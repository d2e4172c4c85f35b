"""E[(1 - e^(x - L))_+] from the moment generating function of L, along a tilted line, with every error bounded.

For c > 0, psi(x) = e^(c x) E[(1 - e^(x - L))_+] is positive and its Fourier transform is M(c + i t)/((c + i t)(c + 1
+ i t)). The trapezoid rule sums psi over a period: never too little, and too much by what Chernoff bounds. Truncation
needs a decaying transform, so a small normal Z, independent of L and with E e^-Z = 1, is added to L: by convexity in
e^x that never lowers the expectation, and chords of the same convex function bound what it adds (see `_unsmoothed`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8192, ABOVE_WIDE, ABOVE_WIDER, ROUNDINGS_8192, UNIT

Complexes = NDArray[np.complex128]

NEGLIGIBLE = 1e-22
_TAIL = 8.7  # the smoothing normal has decayed to e^-37.8 at _TAIL/deviation
_WIDTH = 7.5  # chords reach this many deviations to either side
_PERIOD = 30.0  # aliases are below e^-_PERIOD of the value sought
_TILTS = 200
_MAX_TILT = 1e13
_JUST = 2.0**-24  # of a step
_FEWEST = 2**10  # nodes
_TOGETHER = 2**13  # nodes whose arrays stay in the cache


class Transform(Protocol):
    """A random variable L known by its moment generating function M(theta) = E e^(theta L), M(-1) = 1."""

    @property
    def deviation(self) -> float:
        """The standard deviation of an independent normal part of L, 0 if there is none."""

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """log M and its first two derivatives, in plain floats."""

    def log_mgf_error(self, theta: float) -> float:
        """A bound on the rounding error of log M(theta) as `cumulants` returns it."""

    def spectrum(self, tilt: float, frequencies: Floats) -> tuple[Complexes, Floats]:
        """M(tilt + i t)/M(tilt) at sorted t >= 0 and a bound on its absolute error."""

    def decay(self, tilt: float, low: float, high: float) -> float:
        """A bound on |M(tilt + i t)|/M(tilt) for t in [low, high]; `high` may be infinite."""


@dataclass(frozen=True)
class _Line:
    """A tilt, the deviation of the smoothing normal, and the period and the nodes of the trapezoid rule."""

    tilt: float
    smoothing: float
    period: float
    nodes: int


def best_tilt(transform: Transform, x: float, start: float = 1.0) -> float:
    """The c > 0 that minimises log M(c) - c x - log(c (c + 1)): the saddle point of the inversion.

    It is searched from `start`; the answer is good to about a thousandth, wherever the search began.
    """

    def slope(c: float) -> tuple[float, float]:
        _, first, second = transform.cumulants(c)
        return first - x - 1 / c - 1 / (1 + c), c * (second + 1 / c**2 + 1 / (1 + c) ** 2)

    low, high, c = 1e-9, math.inf, start
    for _ in range(80):  # Newton's steps in log c, inside what is still open
        value, rise = slope(c)
        if value < 0:
            low = c
        else:
            high = c
        step = -value / rise if rise > 0 else math.copysign(1.5, -value)
        if abs(step) < 1e-3 or high - low < 1e-3 * high or low >= _MAX_TILT:
            break
        following = c * math.exp(min(max(step, -3.0), 3.0))
        if not low < following < high:
            following = math.sqrt(low * high) if high > 4 * low else (low + high) / 2
        c = min(following, _MAX_TILT)
    return c


def chernoff(transform: Transform, x: float, c: float) -> float:
    """log of an upper bound on E[(1 - e^(x - L))_+]: (1 - e^-u)_+ <= e^(c u) c^c/(1 + c)^(1 + c)."""
    value = transform.cumulants(c)[0] + transform.log_mgf_error(c)
    return value - c * x + c * math.log(c / (1 + c)) - math.log1p(c) + 8 * UNIT * (1 + c * abs(x) + abs(value))


def stop_loss(transform: Transform, x: Floats, *, slack: float = 0.0, nodes: int = 2**18) -> tuple[Floats, Floats]:
    """Bounds on E[(1 - e^(y - L))_+] that hold for every y within `slack` of each x.

    Guarantee: lower <= truth <= upper, truncation, aliasing, smoothing and rounding included. Where no tight bound
    is found the bounds are wide: 0 below, Chernoff's above.
    """
    x = np.atleast_1d(np.asarray(x, dtype=np.float64))
    order = np.argsort(x, kind="stable")
    lower, upper = np.zeros_like(x), np.ones_like(x)
    ordered = x[order]
    done = 0
    for _ in range(_TILTS):
        if done == x.size:
            break
        point = float(ordered[done])
        tilt = best_tilt(transform, point)
        bound = chernoff(transform, point - slack, tilt)
        line = _line(transform, tilt, bound, nodes)
        if x.size == 1:
            line = _decayed(transform, line)
        if bound < -690 or tilt >= _MAX_TILT or line.period > nodes:
            upper[order[done]] = math.exp(min(bound, 0.0)) + 5e-324
            done += 1
            continue
        window = _window(transform, line, point, float(ordered[-1]) - point)
        low, high, good = window.answer(ordered[done:], slack, (point - slack, bound))
        stop = 1 + int(np.argmin(good[1:])) if good.size > 1 and not good[1:].all() else good.size
        at = order[done : done + stop]
        lower[at], upper[at] = low[:stop], np.minimum(high[:stop], math.exp(min(bound, 0.0)))
        done += stop
    rest = order[done:]
    if rest.size:
        upper[rest] = math.exp(min(chernoff(transform, float(ordered[done]) - slack, tilt), 0.0))
    lower = np.clip(np.nan_to_num(lower, nan=0.0), 0.0, 1.0)
    upper = np.clip(np.nan_to_num(upper, nan=1.0), 0.0, 1.0)
    return np.minimum(lower, upper), upper


def estimate(
    transform: Transform, x: float, *, tilt: float | None = None, nodes: int = 2**10, refined: bool = True
) -> float:
    """About log E[(1 - e^(x - L))_+]: the trapezoid rule at one point, with fewer nodes and no bound on its error.

    Twice as many nodes smooth half as much: where `refined`, the smoothing's share, of second order, is taken off. A
    `tilt` near the best saves the search for it.
    """
    at = best_tilt(transform, x) if tilt is None else tilt
    bound = chernoff(transform, x, at)
    coarse = _sum_at(transform, x, _line(transform, at, bound, nodes))
    if not refined:
        return coarse
    fine = _sum_at(transform, x, _line(transform, at, bound, 2 * nodes))
    return fine + (fine - coarse) / 3


def _sum_at(transform: Transform, x: float, line: _Line) -> float:
    """The log of the trapezoid sum at x, the smoothed expectation."""
    tilt, z = line.tilt, line.smoothing * line.smoothing / 2
    frequencies = 2 * math.pi / line.period * np.arange(line.nodes + 1, dtype=np.float64)
    values, _ = transform.spectrum(tilt, frequencies)
    theta = tilt + 1j * frequencies
    with np.errstate(under="ignore"):
        values = (
            values
            * np.exp(z * (theta * (theta + 1) - tilt * (tilt + 1)) - 1j * frequencies * x)
            / (theta * (theta + 1))
        )
    total = (2 * float(values.real.sum()) - float(values[0].real)) / line.period
    exponent = transform.cumulants(tilt)[0] + z * tilt * (tilt + 1) - tilt * x
    return exponent + math.log(max(total, 1e-300))


def _line(transform: Transform, tilt: float, bound: float, nodes: int) -> _Line:
    """How much to smooth, and over which period to sum, at a tilt."""
    variance = transform.cumulants(tilt)[2] + 1 / tilt**2 + 1 / (1 + tilt) ** 2
    period = max((_PERIOD - bound) / tilt, 12 * math.sqrt(variance))
    needed = _TAIL * period / (2 * math.pi * nodes)
    have = transform.deviation
    return _Line(tilt, 0.0 if have >= needed else math.sqrt(needed**2 - have**2), period, nodes)


def _decayed(transform: Transform, line: _Line) -> _Line:
    """The line with fewer nodes and unsmoothed where the transform itself is negligible beyond them; else as it is.

    The point asked for is a node. Others lie between nodes, where more of them are closer.
    """
    nodes, step = _FEWEST, 2 * math.pi / line.period
    while nodes <= 4 * line.period or not transform.decay(line.tilt, step * nodes, math.inf) < NEGLIGIBLE:
        nodes *= 4
        if nodes >= line.nodes:
            return line
    return _Line(line.tilt, 0.0, line.period, nodes)


def _window(transform: Transform, line: _Line, point: float, span: float) -> _Window:
    """The smoothed expectation around [point, point + span], `point` being a node a quarter of a period in."""
    tilt, smoothing, period, nodes = line.tilt, line.smoothing, line.period, line.nodes
    step = 2 * math.pi / period
    frequencies: Floats = step * np.arange(nodes + 1, dtype=np.float64)
    values = np.zeros(nodes + 1, dtype=np.complex128)
    errors = np.zeros(nodes + 1)
    edges = [nodes + 1]
    while edges[-1] > 33:
        edges.append(edges[-1] // 2)
    edges.append(0)
    for stop, begin in itertools.pairwise(edges):
        inside = slice(begin, stop)
        high = float(frequencies[stop - 1])
        bound = transform.decay(tilt, float(frequencies[begin]), high) if begin else 1.0
        if bound < NEGLIGIBLE:
            errors[inside] = bound
        else:
            values[inside], errors[inside] = transform.spectrum(tilt, frequencies[inside])
    size = 2 * nodes
    quarter = size // 4
    start = point - quarter * (period / size)
    error = norm = 0.0
    for begin in range(0, nodes + 1, _TOGETHER):
        inside = slice(begin, begin + _TOGETHER)
        found = _turned(line, start, frequencies[inside], values[inside], errors[inside])
        error, norm = error + found[0], norm + found[1]
    last = float(frequencies[-1])
    damped = math.exp(max(-0.5 * (math.hypot(smoothing, transform.deviation) * last) ** 2, -700.0))
    error += 2.1 * min(damped, transform.decay(tilt, last, math.inf)) / (last * step)
    raw = np.fft.irfft(values, size) * size
    error += 16 * UNIT * math.log2(size) * math.sqrt(size) * math.sqrt(2 * norm)
    scale = step / (2 * math.pi)
    raw, error = raw * scale, error * scale * ABOVE_WIDER
    margin = math.ceil(_WIDTH * smoothing * size / period) + 8
    stop = min(quarter + math.ceil(span * size / period) + margin, size)
    first = max(quarter - margin, 0)
    x: Floats = start + np.arange(first, stop, dtype=np.float64) * (period / size)
    return _scaled(transform, line, x, raw[first:stop], error)


def _turned(line: _Line, start: float, t: Floats, values: Complexes, errors: Floats) -> tuple[float, float]:
    """Smooths, weighs and turns the transform at frequencies t, in place, for a sum that begins at `start`.

    Returns a bound on the sum of their errors at both t and -t, and the sum of their squares.
    """
    tilt, z = line.tilt, line.smoothing * line.smoothing / 2
    theta = tilt + 1j * t
    below = theta * (theta + 1)
    with np.errstate(under="ignore"):
        error = float(((errors + 32 * UNIT) / np.abs(below)) @ np.exp(-z * np.square(t)))
        if not values.any():
            return 2 * error, 0.0
        values *= np.exp(z * (below - tilt * (tilt + 1)))
        values /= below
    error += 2 * UNIT * float((t * abs(start)) @ np.abs(values))
    norm = float(np.vdot(values, values).real)
    values *= np.exp(-1j * np.mod(t * start, 2 * math.pi))
    np.conj(values, out=values)
    return 2 * error, norm


def _scaled(transform: Transform, line: _Line, x: Floats, raw: Floats, error: float) -> _Window:
    """e^(log M - c x) times the sums, the aliases of either side taken off the lower end."""
    tilt, period = line.tilt, line.period
    z = line.smoothing * line.smoothing / 2

    def log_mgf(c: float) -> float:
        return transform.cumulants(c)[0] + z * c * (c + 1)

    base, slip = log_mgf(tilt), transform.log_mgf_error(tilt)
    exponent = base - tilt * x
    rounding = slip + 8 * UNIT * (2 + abs(base) + tilt * np.abs(x))
    with np.errstate(over="ignore", under="ignore"):
        below = np.exp(tilt * (x - period) - base + slip) / -math.expm1(-tilt * period)
    above = np.full(x.size, np.inf)
    variance = max(transform.cumulants(tilt)[2], 1e-300)
    for multiple in (2.0, 4.0, 7.0, 12.0):
        other = tilt + multiple / math.sqrt(variance)
        gap = other - tilt
        rise = log_mgf(other) - base + transform.log_mgf_error(other) + slip
        with np.errstate(over="ignore", under="ignore"):
            term = np.exp(rise - gap * (x + period)) / (1 + other) / -math.expm1(-gap * period)
        above = np.minimum(above, term)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scale = np.exp(np.minimum(exponent, 700.0))
        upper = (raw + error) * scale * (1 + 2 * rounding)
        alias = below + above
        lower = np.maximum(raw - error - alias, 0.0) * scale * (1 - 2 * rounding)
        sound = (error + alias < 1e-7 * raw) & (rounding < 1e-6) & np.isfinite(upper) & (lower > 0)
    return _Window(line, float(x[0]), lower, upper, sound)


@dataclass(frozen=True, eq=False)
class _Window:
    """Bounds on the smoothed expectation at the nodes start + i step, near one tilt."""

    line: _Line
    start: float
    lower: Floats
    upper: Floats
    sound: NDArray[np.bool_]

    @property
    def step(self) -> float:
        return self.line.period / (2 * self.line.nodes)

    def answer(self, x: Floats, slack: float, bound: tuple[float, float]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Bounds at sorted x from the nodes around them, and where the nodes were sound enough to keep them.

        Convexity in k = e^x: above the chord of two nodes, below the chord of the two nodes on one side, extended.
        """
        chord = math.ceil(_WIDTH * self.line.smoothing / self.step)
        count = self.lower.size
        last = count - chord - 3
        position = (x - self.start) / self.step
        reachable = (position >= chord + 3) & (position < last + 1)
        node = _nodes(position, chord + 3, last)
        low_node, t = self._place(x - slack, 0, count - 2)
        upper = (1 - t) * self.upper[low_node] + t * self.upper[low_node + 1]
        upper *= ABOVE_8192
        # a node just above the point does for the lower end: the expectation falls
        base, t = self._place(x + slack + _JUST * self.step, chord + 1, count - chord - 2)
        t = np.where(x + slack <= self.start + base * self.step, 0.0, t)
        t *= math.exp(self.step)
        below = self._unsmoothed(base, chord, bound) if chord else self.lower[base]
        lower = below * (1 + t) - t * self.upper[base - 1]
        reach = max(chord, 2)
        good = reachable & self.sound[node] & self.sound[node - reach] & self.sound[node + reach]
        return np.maximum(lower - ROUNDINGS_8192 * upper, 0.0), upper, good

    def _place(self, x: Floats, first: int, last: int) -> tuple[NDArray[np.int64], Floats]:
        """The node before each point, and how far e^x lies between it and the next, to a few units."""
        node = _nodes((x - self.start) / self.step, first, last)
        offset = np.clip(x - (self.start + node * self.step), 0.0, self.step)
        return node, np.clip(np.expm1(offset) / math.expm1(self.step), 0.0, 1.0)

    def _unsmoothed(self, index: NDArray[np.int64], chord: int, bound: tuple[float, float]) -> Floats:
        """A lower bound on H from S(x) = E H(x - Z), Z normal with mean s^2/2 and deviation s.

        H <= S, and H is convex in e^x: between x and x -+ side it lies below the chord, so that S(x) <= a S(x - side) +
        b S(x + side) + (P(|Z| < side) - a - b) H(x) + tails, with a and b the mean weights of the chords' far ends.
        `bound` is a point and Chernoff's log bound there, for the tail beyond x - side.
        """
        tilt, s, side = self.line.tilt, self.line.smoothing, chord * self.step
        half = s / 2
        z = side / s
        # P(0 < Z < side), E[e^-Z; 0 < Z < side] and the same on the left; e^-Z moves the mean to -s^2/2.
        right = special.ndtr(z - half) - special.ndtr(-half)
        left = special.ndtr(-half) - special.ndtr(-z - half)
        right_tilted = special.ndtr(z + half) - special.ndtr(half)
        left_tilted = special.ndtr(half) - special.ndtr(-z + half)
        slip = 16 * UNIT
        a = (right - right_tilted + slip) / -math.expm1(-side)
        b = (left_tilted - left + slip) / math.expm1(side)
        far = np.exp(bound[1] - tilt * (self.start + index * self.step - bound[0]))
        tail = far * math.exp(s * s * tilt * (tilt + 1) / 2) * special.ndtr(-(z - half - tilt * s)) * ABOVE_WIDE
        outer = self.upper[index + chord]
        tail += outer * special.ndtr(-z + half) * ABOVE_WIDE
        rest = right + left - a - b + 4 * slip
        low: Floats = self.lower[index] - a * self.upper[index - chord] - b * outer - tail
        return np.asarray(np.maximum(low, 0.0) / rest)


def _nodes(position: Floats, first: int, last: int) -> NDArray[np.int64]:
    """The node at or before each position, kept within the window."""
    return np.clip(np.floor(position), first, last).astype(np.int64)
