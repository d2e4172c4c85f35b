"""Convolution of exponentially tilted masses by FFT, with every error bounded.

Tilting by theta, q(x) = p(x) e^(theta x - K(theta)), moves the composed law to the loss that matters, so that a
delta of 1e-25 is computed from masses of order one. Three errors remain, all added outward: what lies outside the
window and wraps around (Chernoff, from the same K), the rounding of the FFT (in the 2-norm), and that of the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from shapedp.privacy.losses.base import Floats
from shapedp.privacy.losses.discrete import Masses

UNIT = 2.0**-53
_TINY = 5e-324
Complex = NDArray[np.complex128]
Parts = Sequence[tuple[Masses, int]]


class WindowError(ArithmeticError):
    """The window needs more nodes than allowed."""


def cumulant(masses: Masses, theta: float) -> tuple[float, float, float]:
    """K = log E e^(theta L) over the finite masses, with its first two derivatives."""
    losses = masses.losses
    peak, tilted = _tilt(masses, theta)
    total = float(tilted.sum())
    if not total > 0:
        return -math.inf, 0.0, 0.0
    mean = float(np.sum(tilted * losses)) / total
    return peak + math.log(total), mean, max(float(np.sum(tilted * np.square(losses - mean))) / total, 0.0)


def _tilt(masses: Masses, theta: float) -> tuple[float, Floats]:
    """Masses times e^(theta x - peak), the exponents kept above -600 (an overestimate of nothing that counts)."""
    exponent = theta * masses.losses
    peak = float(max(exponent[0], exponent[-1]))
    with np.errstate(under="ignore"):
        return peak, masses.masses * np.exp(np.maximum(exponent - peak, -600.0))


def _log_mgf(parts: Parts, theta: float) -> float:
    """An upper bound on K of the composition, up to the rounding that `_window` adds."""
    total = 0.0
    for masses, n in parts:
        peak, tilted = _tilt(masses, theta)
        total += n * (peak + math.log(float(tilted.sum()) + 1e-300))
    return total


def total_cumulant(parts: Parts, theta: float) -> tuple[float, float, float]:
    """The cumulant of a composition and its derivatives: each is a sum."""
    terms = [(n, cumulant(masses, theta)) for masses, n in parts]
    return tuple(math.fsum(n * term[i] for n, term in terms) for i in range(3))  # type: ignore[return-value]


def _reach(parts: Parts, theta: float) -> float:
    """Largest |theta x| over the masses: the tilt's exponents are rounded relative to it."""
    return max(
        abs(theta) * masses.step * max(abs(masses.first), abs(masses.first + masses.masses.size)) for masses, _ in parts
    )


def _window(parts: Parts, theta: float, base: float, spread: float, tail: float) -> tuple[float, float]:
    """An interval outside which the tilted composition has mass at most `tail` on each side."""
    need = -math.log(tail)
    ends = []
    for sign in (-1.0, 1.0):
        best = math.inf
        for multiple in (0.07, 0.2, 0.4, 0.7, 1.0, 1.4):
            t = multiple * math.sqrt(2 * need) / spread
            slack = sum(n for _, n in parts) * 2.0**-48 * (2 + _reach(parts, theta + sign * t))
            value = _log_mgf(parts, theta + sign * t) - base + slack + need
            best = min(best, value / t)
        ends.append(sign * best)
    return ends[0], ends[1]


def window(parts: Parts, theta: float, tail: float) -> tuple[float, float, float, float, float, float]:
    """Mean and spread of the tilted composition, an interval, and the most mass below and above it."""
    step = parts[0][0].step
    base, mean, variance = total_cumulant(parts, theta)
    spread = max(math.sqrt(variance), step / 4)
    left, right = _window(parts, theta, base, spread, tail)
    bottom = step * sum(n * masses.first for masses, n in parts)
    top = step * sum(n * (masses.first + masses.masses.size - 1) for masses, n in parts)
    below, above = (0.0 if left <= bottom else tail), (0.0 if right >= top else tail)
    return mean, spread, max(left, bottom) - step, min(right, top) + step, below, above


@dataclass(frozen=True, eq=False)
class Convolution:
    """Masses of a composition, tilted, on a window, ready to answer delta(eps) from one side.

    Guarantee: `delta` is at least (upper) or at most (lower) the delta of the composed masses for every eps.
    """

    theta: float
    centre: float
    spread: float
    step: float
    start: float
    log_scale: float
    at_node: Floats
    tail: Floats
    plain: Floats | None
    scale_error: float
    relative: float
    absolute: float
    beyond: float
    infinity: float
    shift: float
    upper: bool

    def delta(self, epsilon: Floats) -> Floats:
        """Bounds on delta at each eps."""
        epsilon = np.asarray(epsilon, dtype=np.float64) + self.shift
        n = self.at_node.size
        index = np.clip(np.ceil((epsilon - self.start) / self.step), 0, n - 1).astype(np.int64)
        node = self.start + index * self.step
        index = np.where((node < epsilon) & (index < n - 1), index + 1, index)
        node = self.start + index * self.step - self.centre
        inside = node + self.centre >= epsilon
        with np.errstate(all="ignore"):
            if self.plain is None:
                gap = -np.expm1(np.minimum(epsilon - self.centre - node, 0.0))
                raw = self.at_node[index] + gap * np.exp(node) * self.tail[index]
                rounding = self.relative * raw
            else:
                tail = np.exp(epsilon - self.centre) * self.tail[index]
                raw = self.plain[index] - tail
                rounding = self.relative * (self.plain[index] + tail)
            raw = np.where(inside, raw, 0.0)
            rounding = np.where(inside, rounding, 0.0) + self.absolute * np.exp(-self.theta * (epsilon - self.centre))
            if self.upper:
                value = raw + rounding + self.beyond
                scaled = np.exp(self.log_scale + np.log(value)) * (1 + self.scale_error)
                scaled = np.where((epsilon < self.start) & (self.theta > 0), 1.0, np.nan_to_num(scaled, nan=1.0))
                return np.asarray(np.clip(scaled + self.infinity + _TINY, 0.0, 1.0), dtype=np.float64)
            value = np.maximum(raw - rounding, 0.0)
            scaled = np.exp(self.log_scale + np.log(value)) * (1 - self.scale_error)
        # The lower end is finite only: what lies at infinity raises delta to p + (1 - p) delta.
        return np.asarray(np.clip(np.nan_to_num(scaled, nan=0.0), 0.0, 1.0), dtype=np.float64)


def _spectrum(parts: Parts, theta: float, size: int) -> tuple[Complex, float, float, float, float]:
    """The FFT of the tilted composition: spectrum, log of the scale removed, and the errors made.

    Errors: relative one of the tilt; 2-norm of the transforms' rounding over sqrt(size); growth of a relative kind.
    Reference: Higham 2002, Theorem 24.2 (FFT); a power by T - 1 products of relative error sqrt(8) UNIT each.
    """
    eta = 16 * UNIT * math.log2(size)
    product: Complex | None = None
    log_scale = tilt_error = norm_error = growth = 0.0
    total = 0
    for masses, n in parts:
        shift = cumulant(masses, theta)[0]
        with np.errstate(under="ignore"):
            tilted = masses.masses * np.exp(theta * masses.losses - shift)
        length = tilted.size
        offset = masses.first % size
        if offset + length <= size:
            folded: Floats = np.zeros(size)
            folded[offset : offset + length] = tilted
        else:
            places = (offset + np.arange(length)) % size
            folded = np.asarray(np.bincount(places, weights=tilted, minlength=size), dtype=np.float64)
            tilt_error += n * (length // size + 2) * UNIT
        norm = math.sqrt(float(folded @ folded))
        spectrum = fft.rfft(folded)
        growth += n * (math.log(max(float(folded.sum()), 1.0)) + 2.0**-45 + eta * math.sqrt(size) * norm)
        tilt_error += n * UNIT * 8 * (2 + abs(theta) * masses.step * max(abs(masses.first), length) + abs(shift))
        norm_error += n * eta * norm
        log_scale += n * shift
        total += n
        with np.errstate(divide="ignore"):
            active = n * np.log(np.abs(spectrum)) > -230
        powered = np.zeros_like(spectrum)
        powered[active] = _power(spectrum[active], n)
        product = powered if product is None else product * powered
    assert product is not None
    norm_error *= 1.05 * math.exp(min(growth, 50.0))
    return product, log_scale, tilt_error, norm_error, 4.8 * UNIT * total + 2 * eta


def _power(base: Complex, exponent: int) -> Complex:
    result: Complex | None = None
    with np.errstate(under="ignore"):
        while True:
            if exponent & 1:
                result = base if result is None else result * base
            exponent >>= 1
            if not exponent:
                assert result is not None
                return result
            base = base * base


def convolve(parts: Parts, theta: float, *, upper: bool, tail: float, node_limit: int) -> Convolution:
    """The composition of (masses, count) pairs near the loss where K'(theta) lies; `tail` may wrap around on each side.

    Guarantee: that of `Convolution`. Raises WindowError where more than `node_limit` nodes would be needed.
    """
    step = parts[0][0].step
    mean, spread, left, right, below, above = window(parts, theta, tail)
    first = math.floor(left / step)
    count = math.ceil(right / step) - first + 1
    if count > node_limit:
        raise WindowError(f"{count} nodes are needed, {node_limit} are allowed")
    size = int(fft.next_fast_len(max(count, 16), real=True))
    product, log_scale, tilt_error, norm_error, growth = _spectrum(parts, theta, size)
    weights = np.maximum(np.roll(fft.irfft(product, size), -(first % size)), 0.0)
    norm = math.sqrt(float(weights @ weights))
    error = norm_error + growth * (norm + norm_error) + 1e-90
    centre = mean
    reach = min(3.5 * spread, 600 / (theta + 1))
    keep = max(math.floor((centre - reach) / step) - first, 0) if theta > 0 else 0
    points = (first + keep) * step + step * np.arange(weights.size - keep) - centre
    keep += int(np.count_nonzero(-(theta + 1) * points > 690)) if theta > 0 else 0
    start = (first + keep) * step
    weights = weights[keep:]
    points = points[points.size - weights.size :]
    with np.errstate(under="ignore", over="ignore"):
        stable = (theta + 1) * max(abs(points[0]), abs(points[-1])) < 600
        tails = np.cumsum((weights * np.exp(-(theta + 1) * np.maximum(points, -600 / (theta + 1))))[::-1])[::-1]
        if stable:
            at_node = np.zeros(weights.size)
            at_node[:-1] = np.cumsum((np.exp(points[:-1]) * math.expm1(step) * tails[1:])[::-1])[::-1]
            plain = None
        else:
            at_node = np.empty(weights.size)
            plain = np.cumsum((weights * np.exp(-theta * points))[::-1])[::-1]
        ramp = step * np.arange(1, weights.size + 1)
        response = math.sqrt(float(np.sum(np.exp(-2 * theta * (ramp - step)) * np.minimum(ramp, 1.0) ** 2)))
    span = abs(float(points[0])) + abs(float(points[-1])) + abs(centre)
    relative = (2 * weights.size + 64) * UNIT + 8 * UNIT * (theta + 1) * span
    relative += math.expm1(min(tilt_error, 1.0))
    absolute = 1.01 * error * response
    beyond = 0.0
    if upper:
        beyond = 1.01 * above * math.exp(max(-theta * (right - centre), -700.0))
    else:
        absolute += 1.01 * (below + above) / (1 + theta)
    infinity = -math.expm1(math.fsum(n * math.log1p(-masses.infinity) for masses, n in parts)) * (1 + 2.0**-40)
    return Convolution(
        theta,
        centre,
        spread,
        step,
        start,
        log_scale - theta * centre,
        at_node,
        tails,
        plain,
        2.0**-47 * (1 + abs(log_scale) + theta * abs(centre)),
        relative,
        absolute,
        beyond,
        infinity if upper else 0.0,
        sum(n * masses.shift for masses, n in parts) * (1 + 2.0**-40),
        upper,
    )


def tilt_for_mean(parts: Parts, target: float) -> float:
    """A theta >= 0 at which the tilted composition has about the mean asked for (0 where it is above already)."""
    return _search(parts, lambda k, mean, variance, theta: mean >= target)


def tilt_for_delta(parts: Parts, target: float) -> float:
    """A theta >= 0 at which delta(K'(theta)) is about the target, by the saddle-point estimate."""
    goal = math.log(target)

    def small(k: float, mean: float, variance: float, theta: float) -> bool:
        return saddle(k, mean, variance, theta) <= goal

    return _search(parts, small)


def saddle(k: float, mean: float, variance: float, theta: float) -> float:
    """log delta at eps = K'(theta), estimated; it guides and never certifies."""
    if not variance > 0:
        return k - theta * mean
    length = 1 / (theta + 1 / math.sqrt(variance))
    return k - theta * mean + math.log(min(length / math.sqrt(2 * math.pi * variance), 1.0) * length / (1 + length))


def calmer_tilt(parts: Parts, theta: float) -> float:
    """A theta no larger at which the tilted law is not yet ruled by single rare losses: variance at most twice."""
    limit = 2 * total_cumulant(parts, 0.0)[2]
    if total_cumulant(parts, theta)[2] <= limit:
        return theta
    low, high = 0.0, theta
    for _ in range(14):
        middle = (low + high) / 2
        if total_cumulant(parts, middle)[2] <= limit:
            low = middle
        else:
            high = middle
    return low


def _search(parts: Parts, reached: Callable[[float, float, float, float], bool]) -> float:
    def test(theta: float) -> bool:
        return reached(*total_cumulant(parts, theta), theta)

    if test(0.0):
        return 0.0
    high, most = 1.0, 20 / parts[0][0].step  # beyond it neighbouring nodes no longer see each other
    while not test(high) and high < most:
        if total_cumulant(parts, high)[2] <= 1e-4 * parts[0][0].step ** 2:
            return high  # all mass sits on one point: tilting further changes nothing
        high = min(4 * high, most)
    low = 0.0 if high == 1.0 else high / 4
    for _ in range(26):
        middle = (low + high) / 2 if low == 0 or high < 4 * low else math.sqrt(low * high)
        if test(middle):
            high = middle
        else:
            low = middle
        if high - low < 1e-3 * high:
            break
    return high
