"""A composition as a Fourier series of few terms: many steps together are smooth, however fine their grid is.

The masses of a composition on a circle of `size` nodes have a transform W. Of a part with masses m, and z the k-th root
of unity, |(1 - z) sum m_j z^j| is at most the sum of |m_j - m_(j-1)|: so high frequencies of a part are bounded without
being computed, and those of a long composition, a product of many such factors, are nothing. The few low ones are
computed one by one, and the sums that delta needs are read off at any node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shapedp.accounting.cumulants import Parts, tilted
from shapedp.numerics.arrays import Floats
from shapedp.numerics.laplace_sums import whole_power
from shapedp.numerics.outward import ABOVE_WIDE, UNIT

Complex = NDArray[np.complex128]
DROPPED = 230.0  # spectrum below e^-230 is taken as nothing
_BABY = 16
_MOST_TERMS = 4096
_FEWEST_TERMS = 24
_DEAR = 8  # times the nodes of the circle: products of masses and terms that cost more than a transform of all
_MOST_ERROR = 1e-7  # relative, of all products: with more the transform of all nodes is better
_MOST_TILT_ERROR = 1e-2  # with more, the masses of all parts may add up to more than 1
_LEAST_TURN = 1e-3  # the least tilt times the length of the circle
_AT_ONCE = 2**19
_GONE = 1e-80  # more than all frequencies left out add to any sum


@dataclass(frozen=True, eq=False)
class Series:
    """The sums of `hockey_stick_sums` over the nodes of a window, at any of them, from few frequencies.

    On the circle, with r = e^(-(theta + 1) step) and z = e^(2 pi i/size),
        sum over m >= 0 of w_(i+m) r^m = 1/size sum_k W_k z^(ik)/(1 - r z^k);
    what lies past the window's end is what the first node sees, times a power of r, and is taken off.
    """

    size: int
    first: int
    exponents: tuple[float, float]  # theta step and (theta + 1) step
    at_node: Complex
    tail: Complex

    def at(self, index: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The two sums at some nodes of the window, counted from its first."""
        found = np.empty((2, index.size))
        several = max(_AT_ONCE // self.tail.size, 1)
        for start in range(0, index.size, several):
            here = slice(start, start + several)
            found[:, here] = self._around(index.reshape(-1)[here])
        node, tail = self._start
        left = (self.size - index.reshape(-1)).astype(np.float64)
        with np.errstate(under="ignore"):
            far, farther = (np.exp(-one * left) for one in self.exponents)
        found[0] -= far * node + (far - farther) * tail
        found[1] -= farther * tail
        np.maximum(found, 0.0, out=found)
        return found[0].reshape(index.shape), found[1].reshape(index.shape)

    @cached_property
    def _start(self) -> tuple[float, float]:
        """Both sums on the circle, at the window's first node."""
        node, tail = self._around(np.zeros(1, dtype=np.int64))[:, 0]
        return float(node), float(tail)

    def _around(self, index: NDArray[np.int64]) -> Floats:
        """Both sums on the circle."""
        turns = np.outer((self.first + index) % self.size, np.arange(self.tail.size)) % self.size
        cosine, sine = _circle(turns, self.size)
        return np.array([cosine @ one.real - sine @ one.imag for one in (self.at_node, self.tail)])


def _circle(turns: NDArray[np.int64], size: int) -> tuple[Floats, Floats]:
    """Cosine and sine of 2 pi turns/size. The point is off by 20 UNIT at most: the angle, up to pi, by 4 UNIT of it."""
    angle = np.where(turns > size // 2, turns - size, turns) * (1 / size) * (2 * math.pi)
    return np.cos(angle), np.sin(angle)


def _roughness(places: NDArray[np.int64], weights: Floats) -> tuple[float, float, float]:
    """The sum of |m_j - m_(j-1)| over runs of neighbouring nodes, the mass of nodes without any, and all mass."""
    beside = np.diff(places) == 1
    after, before = np.append(beside, False), np.insert(beside, 0, False)
    varied = float(np.abs(np.diff(weights))[beside].sum())
    ends = weights[after & ~before].sum() + weights[before & ~after].sum()
    alone = float(weights[~after & ~before].sum())
    return (varied + float(ends)) * ABOVE_WIDE, alone * ABOVE_WIDE, float(weights.sum())


def _terms(rough: list[tuple[float, float, float, int]], size: int) -> int | None:
    """How many frequencies are needed: beyond them the product of all parts' bounds is below e^-DROPPED/size."""
    most = min(size // 4, _MOST_TERMS)
    if most < _FEWEST_TERMS:
        return None
    terms = np.unique(np.geomspace(_FEWEST_TERMS, most, 48).astype(np.int64))
    chord = 2 * np.sin(math.pi * terms / size) / ABOVE_WIDE
    logs = np.zeros(terms.size)
    for varied, alone, whole, n in rough:
        logs += n * np.log(np.minimum(varied / chord + alone, whole) * ABOVE_WIDE)
    enough = np.flatnonzero(logs <= -DROPPED - math.log(size))
    return int(terms[enough[0]]) if enough.size else None


def _transform(places: NDArray[np.int64], weights: Floats, size: int, terms: int) -> tuple[Complex, float]:
    """The lowest frequencies of weights on a circle, and how far each may be off.

    z^(16 a + b) = (z^16)^a z^b. A power e of z by e - 1 products is off by 24 e UNIT at most; a sum of P complex
    products by (3 P + 8) UNIT of the sum of the weights.
    """
    rows = -(-terms // _BABY)
    baby, giant = np.empty((_BABY, places.size), dtype=np.complex128), np.empty((rows, places.size), np.complex128)
    for table, unit in ((baby, 1), (giant, _BABY)):
        cosine, sine = _circle(places * unit % size, size)
        root = cosine - 1j * sine
        table[0] = 1.0
        for power in range(1, len(table)):
            np.multiply(table[power - 1], root, out=table[power])
    found = ((giant * weights) @ baby.T).ravel()[:terms]
    off = (3 * places.size + 24 * (_BABY + rows) + 64) * UNIT * ABOVE_WIDE
    return found, off * float(weights.sum())


def series(
    parts: Parts, theta: float, step: float, first: int, size: int
) -> tuple[Series, float, tuple[float, float]] | None:
    """The composition of tilted parts as a series; None where a transform of all nodes is to be preferred.

    Returns: the series, the log of the relative error of the tilts, and the most that roundings add to a delta for eps
    inside and below the window.
    """
    if theta * step * size < _LEAST_TURN:
        return None
    weights, tilt_error = [], 0.0
    for masses, n in parts:
        one, error = tilted(masses, theta)
        weights.append(one)
        tilt_error += n * error
    if tilt_error > _MOST_TILT_ERROR:
        return None
    rough = [(*_roughness(masses.places, one), n) for one, (masses, n) in zip(weights, parts, strict=True)]
    terms = _terms(rough, size)
    if terms is None or sum(one.size for one in weights) * terms > _DEAR * size * len(parts):
        return None
    product: Complex = np.ones(terms, dtype=np.complex128)
    logs, relative, total = np.zeros(terms), np.zeros(terms), 0
    for one, (masses, n) in zip(weights, parts, strict=True):
        spectrum, off = _transform((masses.first + masses.places) % size, one, size, terms)
        length = np.abs(spectrum)
        logs += n * np.log(length + off)
        relative += n * np.log1p(off / np.maximum(length, 1e-300))
        total += n
        if n * off > _MOST_ERROR:
            return None
        with np.errstate(under="ignore"):
            product *= whole_power(spectrum, n)
    roundings = UNIT * (8 * (total + len(parts)) + 4 * terms + 256)
    with np.errstate(under="ignore"):
        off_by: Floats = np.exp(logs) * (-np.expm1(-relative) + roundings) * ABOVE_WIDE
    return _read(product, off_by, theta, step, first, size, tilt_error)


def _read(
    product: Complex, error: Floats, theta: float, step: float, first: int, size: int, tilt_error: float
) -> tuple[Series, float, tuple[float, float]]:
    """The coefficients of both sums, nothing subtracted: 1 - r z^k = (1 - r) + 2 r sin^2 - i r sin."""
    angle = math.pi * np.arange(product.size) / size
    exponents = theta * step, (theta + 1) * step
    near, far = (
        -math.expm1(-one) + math.exp(-one) * (2 * np.sin(angle) ** 2 - 1j * np.sin(2 * angle)) for one in exponents
    )
    twice = np.where(angle > 0, 2.0, 1.0) / size
    tail = twice / far
    at_node = math.exp(-exponents[0]) * -math.expm1(-step) * (np.cos(2 * angle) + 1j * np.sin(2 * angle)) * tail / near
    off = [float(np.abs(one) @ error) * ABOVE_WIDE + _GONE for one in (at_node, tail)]
    rounding = 2 * off[0] + off[1] + 2 * min(step, 1.0) * off[1], 2 * off[0] + 3 * off[1]
    return Series(size, first, exponents, at_node * product, tail * product), tilt_error, rounding
