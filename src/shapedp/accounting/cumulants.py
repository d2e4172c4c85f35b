"""Cumulants of compositions of masses, the windows they give, and the tilts that move a composition.

Windows certify: they hold all but a stated mass, by Chernoff's bound. Tilts guide: any of them gives valid bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_16, UNIT
from shapedp.numerics.sums import dot
from shapedp.privacy.losses.masses import Masses

_LOG_RANGE = 760.0  # no logarithm of a float is larger
MOST_TILT = 20.0  # per step of the grid: beyond it neighbouring nodes no longer see each other
_MULTIPLES = (1.4, 1.0, 0.7, 0.4, 0.2, 0.07, 0.03, 0.012, 0.005, 0.002)  # of a Gaussian's best Chernoff tilt
_FEW = 4096  # nodes that never need a window
Parts = Sequence[tuple[Masses, int]]


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
    mean = dot(tilted, losses) / total
    return peak + math.log(total), mean, max(dot(tilted, np.square(losses - mean)) / total, 0.0)


def tilted(masses: Masses, theta: float) -> tuple[Floats, float]:
    """The masses held, tilted so that they add up to 1, and the log of the relative error of each.

    They are tilted by their own K, so that they add up to 1 as closely as logarithms are rounded; where they do not, an
    error is raised.
    """
    shift = cumulant(masses, theta)[0]
    with np.errstate(under="ignore"):
        weights = np.exp(theta * masses.held[0] + masses.held[1] - shift)
    error = 8 * UNIT * (reach([(masses, 1)], theta) + abs(shift))
    whole = float(weights.sum())
    if not abs(whole - 1) <= 2 * error + masses.masses.size * UNIT:
        raise ArithmeticError(f"tilted masses add up to {whole!r} instead of 1: please report this")
    return weights, error


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


def reach(parts: Parts, theta: float) -> float:
    """Largest |log p| + |theta x| over the masses: the tilt's exponents are rounded relative to it."""
    return _LOG_RANGE + max(
        abs(theta) * masses.step * max(abs(masses.first), abs(masses.first + masses.masses.size)) for masses, _ in parts
    )


def _window(parts: Parts, theta: float, base: float, spread: float, tail: float) -> tuple[float, float]:
    """An interval outside which the tilted composition has mass at most `tail` on each side."""
    need, terms = -math.log(tail), sum(n for _, n in parts)

    def bound(multiple: float, sign: float) -> float:
        t = multiple * math.sqrt(2 * need) / spread
        slack = terms * ROUNDINGS_16 * reach(parts, theta + sign * t)
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


def tilt_for_mean(parts: Parts, target: float) -> float:
    """A theta >= 0 at which the tilted composition has about the mean asked for (0 where it is above already).

    Newton's steps, inside what is still open.
    """
    _, mean, variance = total_cumulant(parts, 0.0)
    if mean >= target:
        return 0.0
    step = parts[0][0].step
    low, high, most = 0.0, math.inf, MOST_TILT / step
    theta = (target - mean) / variance if variance > 0 else 1.0
    for _ in range(60):
        theta = min(theta, most)
        if not low < theta < high:
            theta = math.sqrt(low * high) if 0 < 4 * low < high else (low + high) / 2
        _, mean, variance = total_cumulant(parts, theta)
        if mean >= target:
            high = theta
        else:
            low = theta
        if theta >= most and mean < target:
            return most
        if variance <= 1e-4 * step**2 and mean < target:
            return theta  # all mass sits on one point: tilting further changes nothing
        if high - low < 1e-3 * high or abs(mean - target) <= 1e-4 * math.sqrt(variance):
            break
        theta += min((target - mean) / variance, 3 * theta) if variance > 0 else theta
    return theta if high == math.inf else min(theta, high) if abs(mean - target) <= 1e-4 * math.sqrt(variance) else high


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
