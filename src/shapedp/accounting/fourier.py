"""Convolution of exponentially tilted masses by FFT, with every error bounded.

Tilting by theta, q(x) = p(x) e^(theta x - s), moves the composed law to the loss that matters, so that a delta of
1e-25 is computed from masses of order one. Any theta >= 0 and any s give valid bounds; a good choice makes them tight.
Three errors remain, all added outward: what lies outside the window and wraps around (Chernoff bound), the rounding of
the FFT (in the 2-norm), and that of the sums. Scales are kept as logarithms until the very end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from shapedp.accounting.cumulants import MOST_TILT, Parts, cumulant, reach, tilted, window
from shapedp.accounting.series import DROPPED, Complex, Series, series
from shapedp.numerics import SearchError
from shapedp.numerics.arrays import Floats
from shapedp.numerics.laplace_sums import whole_power
from shapedp.numerics.outward import ABOVE_8192, BELOW_8192, ROUNDINGS_8, ROUNDINGS_16, ROUNDINGS_256, UNIT
from shapedp.numerics.sums import dot
from shapedp.numerics.tailsums import hockey_stick_sums

_TINY = 5e-324
_MOST_ERROR = 30.0  # a relative error of e^30 says nothing any more
_UNDERFLOW = 1e-280  # more than underflowing sums and products can hide


class WindowError(ArithmeticError):
    """The window needs more nodes than allowed."""


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of `hockey_stick_sums` at all nodes of a window."""

    at_node: Floats
    tail: Floats

    @property
    def size(self) -> int:
        return self.tail.size

    def at(self, index: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Both sums at some nodes."""
        return self.at_node[index], self.tail[index]


@dataclass(frozen=True, eq=False)
class Convolution:
    """Masses of a composition, tilted, on a window of nodes, ready to answer delta(eps) from one side.

    With x the first node at or above eps and g = x - eps, the composed masses on the window give
        delta(eps) = e^(log_scale - theta x) (at_node + (1 - e^-g) tail)     (see `hockey_stick_sums`).

    Guarantee: `delta` is at least (upper) or at most (lower) the delta of the composed masses, for every eps.
    """

    theta: float
    centre: float
    spread: float
    step: float
    first: int
    right: float  # the window's right end: above it lies at most `above`, below its first node at most `below`
    log_scale: float
    log_error: float
    sums: Sums | Series
    relative: float
    rounding: tuple[float, float]  # most that the rounding of all masses adds, for eps inside and below the window
    below: float
    above: float
    infinity: float
    log_price: float  # below a loss, infinity adds what it has above e^eps times this Q-mass
    shift: float
    upper: bool

    def delta(self, epsilon: Floats) -> Floats:
        """Bounds on delta at each eps."""
        epsilon = np.asarray(epsilon, dtype=np.float64) + self.shift
        epsilon = epsilon + (-ROUNDINGS_8 if self.upper else ROUNDINGS_8) * np.abs(epsilon)
        last = self.first + self.sums.size - 1
        node = np.ceil(epsilon / self.step)
        past = node > last  # beyond the window: only what lies above it is left
        node = np.clip(node, self.first, last).astype(np.int64)
        index, x = node - self.first, node * self.step  # x may be rounded to just below eps
        early = x - epsilon > self.step  # before the window
        with np.errstate(under="ignore", over="ignore", divide="ignore"):
            at_node, tail = self.sums.at(index)
            raw = at_node - np.expm1(np.minimum(epsilon - x, 0.0)) * tail
            raw = np.where(past, 0.0, raw)
            rounding = np.where(past, 0.0, np.where(early, self.rounding[1], self.rounding[0]))
            scale = self.log_scale - self.theta * np.where(past, epsilon, x)
            error = self.log_error + ROUNDINGS_8 * self.theta * np.abs(x)
            if self.upper:
                beyond = self.above * np.exp(np.minimum(-self.theta * (self.right - x), 0.0))
                found = scale + np.log((raw + rounding) * (1 + self.relative) + beyond)
                if self.below:
                    hidden = self.log_scale - self.theta * epsilon + math.log(self.below)
                    found = np.where(early, np.logaddexp(found, hidden), found)
                value = np.exp(np.minimum(found + error + ROUNDINGS_8 * np.abs(np.maximum(found, -1e9)), 0.0)) * (
                    1 + ROUNDINGS_8
                )
                return np.asarray(np.minimum(value + self.infinity + _TINY, 1.0), dtype=np.float64)
            folded = (self.below + self.above) * np.where(early, 1.0, self._most_response())
            found = scale + np.log(np.maximum(raw * (1 - self.relative) - rounding - folded, 0.0))
            value = np.exp(np.minimum(found - error - ROUNDINGS_8 * np.abs(np.maximum(found, -1e9)), 0.0)) * (
                1 - ROUNDINGS_8
            )
            value = value + np.maximum(self.infinity - np.exp(np.minimum(epsilon + self.log_price, 0.0)), 0.0)
        return np.asarray(np.where(value > 1e-300, value, 0.0), dtype=np.float64)

    def _most_response(self) -> float:
        """The largest e^(-theta (x_j - x)) (1 - e^(eps - x_j)) for eps within a step below x."""
        return min(1.0, math.exp(min(2 * self.theta * self.step, 50.0)) / (1 + self.theta))


def _spectrum(parts: Parts, theta: float, size: int) -> tuple[Complex, float, float, float]:
    """The FFT of the tilted composition: spectrum, and the errors made.

    Errors: the log of the relative one of the tilt; the 2-norm of the transforms' rounding over sqrt(size); a relative
    one of the products.
    Reference: Higham 2002, Theorem 24.2 (FFT); a power by T - 1 products of relative error sqrt(8) UNIT each.
    """
    eta = 16 * UNIT * math.log2(size)
    product: Complex | None = None
    tilt_error = norm_error = growth = 0.0
    total = 0
    for masses, n in parts:
        weights, error = tilted(masses, theta)
        tilt_error += n * error
        whole = float(weights.sum())
        places, length = (masses.first + masses.places) % size, masses.span[1] - masses.span[0] + 1
        if length <= size:
            folded: Floats = np.zeros(size)
            folded[places] = weights
        else:
            folded = np.asarray(np.bincount(places, weights=weights, minlength=size), dtype=np.float64)
            tilt_error += n * (length // size + 2) * UNIT
        norm = math.sqrt(dot(folded, folded))
        spectrum = fft.rfft(folded)
        growth += n * (max(whole - 1, 0.0) + ROUNDINGS_256 + eta * math.sqrt(size) * norm)
        norm_error += n * (eta * norm + _UNDERFLOW)
        total += n
        with np.errstate(under="ignore"):
            active = np.square(spectrum.real) + np.square(spectrum.imag) > math.exp(-2 * DROPPED / n)
        powered = np.zeros_like(spectrum)
        powered[active] = whole_power(spectrum[active], n)
        product = powered if product is None else product * powered
    assert product is not None
    if max(growth, tilt_error) > _MOST_ERROR:
        raise SearchError(
            f"rounding leaves nothing certain about {total} terms: compose fewer, or losses of a smaller scale"
        )
    norm_error = 1.05 * math.exp(growth) * (norm_error + len(parts) * math.exp(-DROPPED))
    return product, tilt_error, norm_error, 4.8 * UNIT * total + 2 * eta


def _transformed(
    parts: Parts, theta: float, step: float, first: int, size: int
) -> tuple[Sums, float, tuple[float, float]]:
    """The sums at all nodes, their relative error, and what roundings add at most, for eps in the window and below."""
    product, tilt_error, norm_error, growth = _spectrum(parts, theta, size)
    weights = np.maximum(np.roll(fft.irfft(product, size), -(first % size)), 0.0)
    norm = math.sqrt(dot(weights, weights))
    error = 1.01 * (norm_error + growth * (norm + norm_error)) + _UNDERFLOW
    at_node, tails, relative = hockey_stick_sums(weights, step, theta)
    # rounding of weight j moves delta at node i by e^(-theta k step) min((k + 1) step, 1), k = j - i, or less
    decay = np.exp(np.maximum(-theta * step * np.arange(size), -700.0))
    ramp = np.minimum(step * np.arange(1, size + 1), 1.0)
    responses = math.sqrt(float(np.sum((decay * ramp) ** 2))), math.sqrt(dot(decay, decay))
    rounding = error * responses[0], error * responses[1]
    return Sums(at_node, tails), relative + math.expm1(tilt_error), rounding


def convolve(parts: Parts, theta: float, *, upper: bool, tail: float, node_limit: int) -> Convolution:
    """The composition of (masses, count) pairs near the loss where K'(theta) lies; `tail` may wrap around on each side.

    Guarantee: that of `Convolution`. Raises WindowError where more than `node_limit` nodes would be needed.
    """
    step = parts[0][0].step
    theta = min(theta, MOST_TILT / step)
    mean, spread, left, right, below, above = window(parts, theta, tail)
    if not math.isfinite(right - left):
        raise WindowError("rounding leaves no window")
    first = math.floor(left / step)
    count = math.ceil(right / step) - first + 1
    if count > node_limit:
        raise WindowError(f"{count} nodes are needed, {node_limit} are allowed")
    size = int(fft.next_fast_len(max(count, 16), real=True))
    sums: Sums | Series
    few = series(parts, theta, step, first, size)
    if few is None:
        sums, relative, rounding = _transformed(parts, theta, step, first, size)
    else:
        sums, relative, rounding = few[0], math.expm1(few[1]) + ROUNDINGS_256, few[2]
    shifts = [n * cumulant(masses, theta)[0] for masses, n in parts]
    log_scale = math.fsum(shifts)
    infinity, log_price = (_at_infinity(parts), -math.inf) if upper else _apart(parts)
    return Convolution(
        theta,
        mean,
        spread,
        step,
        first,
        right,
        log_scale,
        ROUNDINGS_16 * (1 + math.fsum(map(abs, shifts))),
        sums,
        relative,
        (1.01 * rounding[0] + _UNDERFLOW, 1.01 * rounding[1] + _UNDERFLOW),
        1.01 * below,
        1.01 * above,
        infinity,
        log_price,
        sum(n * masses.shift for masses, n in parts) * ABOVE_8192,
        upper,
    )


def _at_infinity(parts: Parts) -> float:
    """1 - prod (1 - p)^n, rounded up."""
    if any(masses.infinity >= 1 for masses, _ in parts):
        return 1.0
    return -math.expm1(math.fsum(n * math.log1p(-masses.infinity) for masses, n in parts)) * ABOVE_8192


def _apart(parts: Parts) -> tuple[float, float]:
    """P from below, and log Q from above, of "some part's loss was set apart".

    With f the finite mass of a part, p that apart and q its Q-mass, P = prod (f + p)^n - prod f^n, which rises with
    f and p, and Q <= sum n q prod S^n with S >= 1 a bound on the Q-mass of a part.
    """
    if not any(masses.infinity for masses, _ in parts):
        return 0.0, -math.inf
    total, whole, rise, prices, growth = 0, 0.0, 0.0, [-math.inf], 0.0
    for masses, n in parts:
        finite = float(masses.masses.sum()) * BELOW_8192
        total += n
        whole += n * math.log(finite + masses.infinity)
        rise += n * math.log1p(masses.infinity / finite)
        prices.append(math.log(n) + masses.log_price)
        size = cumulant(masses, -1.0)[0] + masses.shift + ROUNDINGS_16 * reach([(masses, n)], -1.0)
        growth += n * max(float(np.logaddexp(size, masses.log_price)), 0.0)
    error = ROUNDINGS_16 * (total + len(parts)) * (1 + abs(whole))
    shown = math.exp(min(whole, 0.0)) * -math.expm1(-rise) * max(1 - error, 0.0)
    return shown, float(np.logaddexp.reduce(prices)) + growth + error
