"""Convolution of exponentially tilted masses by FFT, with every error bounded.

Tilting by theta, q(x) = p(x) e^(theta x - s), moves the composed law to the loss that matters, so that a delta of
1e-25 is computed from masses of order one. Any theta >= 0 and any s give valid bounds; a good choice makes them tight.
Three errors remain, all added outward: what lies outside the window and wraps around (Chernoff bound), the rounding of
the FFT (in the 2-norm), and that of the sums. Scales are kept as logarithms until the very end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8192, BELOW_8192, ROUNDINGS_8, ROUNDINGS_16, ROUNDINGS_256, UNIT
from shapedp.numerics.tailsums import hockey_stick_sums
from shapedp.privacy.losses.masses import Masses

_TINY = 5e-324
_LOG_RANGE = 760.0  # no logarithm of a float is larger
_MOST_ERROR = 30.0  # a relative error of e^30 says nothing any more
_UNDERFLOW = 1e-280  # more than underflowing sums and products can hide
MOST_TILT = 20.0  # per step of the grid: beyond it neighbouring nodes no longer see each other
_MULTIPLES = (1.4, 1.0, 0.7, 0.4, 0.2, 0.07, 0.03, 0.012, 0.005, 0.002)  # of a Gaussian's best Chernoff tilt
_FEW = 4096  # nodes that never need a window
_DROPPED = 230.0  # spectrum below e^-230 is taken as nothing
Complex = NDArray[np.complex128]
Parts = Sequence[tuple[Masses, int]]


class WindowError(ArithmeticError):
    """The window needs more nodes than allowed."""


def cumulant(masses: Masses, theta: float) -> tuple[float, float, float]:
    """K = log E e^(theta L) over the finite masses, with its first two derivatives."""
    losses, logs = masses.held
    if not losses.size:
        return -math.inf, 0.0, 0.0
    exponent = theta * losses + logs
    peak = float(exponent.max())
    with np.errstate(under="ignore"):
        tilted = np.exp(exponent - peak)
    total = float(tilted.sum())
    mean = float(tilted @ losses) / total
    return peak + math.log(total), mean, max(float(tilted @ np.square(losses - mean)) / total, 0.0)


def log_moment(parts: Parts, theta: float) -> float:
    """The cumulant of a composition alone."""
    found = []
    for masses, n in parts:
        losses, logs = masses.held
        if not losses.size:
            return -math.inf
        exponent = theta * losses
        exponent += logs
        peak = float(exponent.max())
        exponent -= peak
        with np.errstate(under="ignore"):
            found.append(n * (peak + math.log(float(np.exp(exponent, out=exponent).sum()))))
    return math.fsum(found)


def total_cumulant(parts: Parts, theta: float) -> tuple[float, float, float]:
    """The cumulant of a composition and its derivatives: each is a sum."""
    terms = [(n, cumulant(masses, theta)) for masses, n in parts]
    return tuple(math.fsum(n * term[i] for n, term in terms) for i in range(3))  # type: ignore[return-value]


def _reach(parts: Parts, theta: float) -> float:
    """Largest |log p| + |theta x| over the masses: the tilt's exponents are rounded relative to it."""
    return _LOG_RANGE + max(
        abs(theta) * masses.step * max(abs(masses.first), abs(masses.first + masses.masses.size)) for masses, _ in parts
    )


def _window(parts: Parts, theta: float, base: float, spread: float, tail: float) -> tuple[float, float]:
    """An interval outside which the tilted composition has mass at most `tail` on each side."""
    need, terms = -math.log(tail), sum(n for _, n in parts)

    def bound(multiple: float, sign: float) -> float:
        t = multiple * math.sqrt(2 * need) / spread
        slack = terms * ROUNDINGS_16 * _reach(parts, theta + sign * t)
        return (log_moment(parts, theta + sign * t) - base + slack + need) / t

    ends = []
    for sign in (-1.0, 1.0):
        best = bound(_MULTIPLES[0], sign)
        for multiple in _MULTIPLES[1:]:
            value = bound(multiple, sign)
            if multiple < 1 and not value < best:  # it falls and then rises
                break
            best = min(best, value)
        ends.append(sign * best)
    return ends[0], ends[1]


def window(parts: Parts, theta: float, tail: float) -> tuple[float, float, float, float, float, float]:
    """Mean and spread of the tilted composition, an interval, and the most mass below and above it."""
    step = parts[0][0].step
    base, mean, variance = total_cumulant(parts, theta)
    spread = max(math.sqrt(variance), step / 4)
    left, right = _window(parts, theta, base, spread, tail)
    bottom, top = (step * sum(n * masses.span[side] for masses, n in parts) for side in (0, 1))
    if top - bottom <= max(1.3 * (right - left), _FEW * step):
        left, right = bottom, top  # all of it fits
    below, above = (0.0 if left <= bottom else tail), (0.0 if right >= top else tail)
    return mean, spread, max(left, bottom) - step, min(right, top) + step, below, above


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
    at_node: Floats
    tail: Floats
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
        last = self.first + self.at_node.size - 1
        node = np.ceil(epsilon / self.step)
        past = node > last  # beyond the window: only what lies above it is left
        node = np.clip(node, self.first, last).astype(np.int64)
        index, x = node - self.first, node * self.step  # x may be rounded to just below eps
        early = x - epsilon > self.step  # before the window
        with np.errstate(under="ignore", over="ignore", divide="ignore"):
            raw = self.at_node[index] - np.expm1(np.minimum(epsilon - x, 0.0)) * self.tail[index]
            raw = np.where(past, 0.0, raw)
            rounding = np.where(past, 0.0, np.where(early, self.rounding[1], self.rounding[0]))
            scale = self.log_scale - self.theta * np.where(past, epsilon, x)
            error = self.log_error + ROUNDINGS_8 * self.theta * np.abs(x)
            if self.upper:
                beyond = self.above * np.exp(np.minimum(-self.theta * (self.right - x), 0.0))
                found = scale + np.log(raw * (1 + self.relative) + rounding + beyond)
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
    one of the products. Each part is tilted by its own K, so that its masses add up to 1 as closely as logarithms are
    rounded; where they do not, an error is raised.
    Reference: Higham 2002, Theorem 24.2 (FFT); a power by T - 1 products of relative error sqrt(8) UNIT each.
    """
    eta = 16 * UNIT * math.log2(size)
    product: Complex | None = None
    tilt_error = norm_error = growth = 0.0
    total = 0
    for masses, n in parts:
        shift = cumulant(masses, theta)[0]
        with np.errstate(under="ignore"):
            tilted = np.exp(theta * masses.losses + masses.log_masses - shift)
        error = 8 * UNIT * (_reach([(masses, n)], theta) + abs(shift))
        tilt_error += n * error
        whole = float(tilted.sum())
        if not abs(whole - 1) <= 2 * error + masses.masses.size * UNIT:
            raise ArithmeticError(f"tilted masses add up to {whole!r} instead of 1: please report this")
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
        growth += n * (max(whole - 1, 0.0) + ROUNDINGS_256 + eta * math.sqrt(size) * norm)
        norm_error += n * (eta * norm + _UNDERFLOW)
        total += n
        with np.errstate(divide="ignore"):
            active = n * np.log(np.abs(spectrum)) > -_DROPPED
        powered = np.zeros_like(spectrum)
        powered[active] = _power(spectrum[active], n)
        product = powered if product is None else product * powered
    assert product is not None
    if max(growth, tilt_error) > _MOST_ERROR:
        raise ArithmeticError(
            f"rounding leaves nothing certain about {total} terms: compose fewer, or losses of a smaller scale"
        )
    norm_error = 1.05 * math.exp(growth) * (norm_error + len(parts) * math.exp(-_DROPPED))
    return product, tilt_error, norm_error, 4.8 * UNIT * total + 2 * eta


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
    theta = min(theta, MOST_TILT / step)
    mean, spread, left, right, below, above = window(parts, theta, tail)
    if not math.isfinite(right - left):
        raise WindowError("rounding leaves no window")
    first = math.floor(left / step)
    count = math.ceil(right / step) - first + 1
    if count > node_limit:
        raise WindowError(f"{count} nodes are needed, {node_limit} are allowed")
    size = int(fft.next_fast_len(max(count, 16), real=True))
    product, tilt_error, norm_error, growth = _spectrum(parts, theta, size)
    weights = np.maximum(np.roll(fft.irfft(product, size), -(first % size)), 0.0)
    norm = math.sqrt(float(weights @ weights))
    error = 1.01 * (norm_error + growth * (norm + norm_error)) + _UNDERFLOW
    at_node, tails, relative = hockey_stick_sums(weights, step, theta)
    # rounding of weight j moves delta at node i by e^(-theta k step) min((k + 1) step, 1), k = j - i, or less
    decay = np.exp(np.maximum(-theta * step * np.arange(size), -700.0))
    ramp = np.minimum(step * np.arange(1, size + 1), 1.0)
    responses = math.sqrt(float(np.sum((decay * ramp) ** 2))), math.sqrt(float(decay @ decay))
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
        at_node,
        tails,
        relative + math.expm1(tilt_error),
        (1.01 * error * responses[0] + _UNDERFLOW, 1.01 * error * responses[1] + _UNDERFLOW),
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
        size = cumulant(masses, -1.0)[0] + masses.shift + ROUNDINGS_16 * _reach([(masses, n)], -1.0)
        growth += n * max(float(np.logaddexp(size, masses.log_price)), 0.0)
    error = ROUNDINGS_16 * (total + len(parts)) * (1 + abs(whole))
    shown = math.exp(min(whole, 0.0)) * -math.expm1(-rise) * max(1 - error, 0.0)
    return shown, float(np.logaddexp.reduce(prices)) + growth + error


def tilt_for_mean(parts: Parts, target: float) -> float:
    """A theta >= 0 at which the tilted composition has about the mean asked for (0 where it is above already)."""
    return _search(parts, lambda k, mean, variance, theta: mean >= target)


def tilt_for_delta(parts: Parts, target: float) -> float:
    """A theta >= 0 at which delta(K'(theta)) is about the target, by the saddle-point estimate."""
    goal = math.log(target)
    return _search(parts, lambda k, mean, variance, theta: saddle(k, mean, variance, theta) <= goal)


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
    high, most = 1.0, MOST_TILT / parts[0][0].step
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
