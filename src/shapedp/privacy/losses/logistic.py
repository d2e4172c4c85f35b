"""The privacy loss of logistic noise: pure differential privacy, and the exact profile of K coordinates.

A coordinate of ratio a = |v|/s has e^(L/2) uniform on [e^(-a/2), e^(a/2)]: with u the distribution function of the
noise, p(x)/p(x + v) = e^-a (u + e^a (1 - u))^2. Hence |L| <= a, delta(eps) = (1 - e^((eps - a)/2))^2/(1 - e^-a), and
E e^(theta L) = sinh(sigma a)/(2 sigma sinh(a/2)) with sigma = theta + 1/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.inversion import Complexes, Transform
from shapedp.numerics.laplace_sums import whole_power
from shapedp.numerics.outward import ABOVE_128, ABOVE_8192, BELOW_32, BELOW_128, ROUNDINGS_8192, UNIT
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.sums import RatioLoss, Terms

_MOST_VALUES = 32  # more distinct ratios are rounded up to so many
_SMALL = 0.05  # below it the series of coth and 1/sinh^2 are used
_FAINT = 1e-30  # of the largest ratio: fewer than 1e15 of them add less than its rounding
_TINY = 1e-323
_TOGETHER = 2**13  # frequencies whose arrays stay in the cache


@dataclass(frozen=True, eq=False)
class LogisticSum:
    """The sum of independent losses of ratios `values`, each `counts` times, by its moment generating function."""

    values: Floats
    counts: Floats
    deviation: float = 0.0

    @cached_property
    def _reach(self) -> float:
        return float(self.counts @ self.values)

    def split(self) -> tuple[Transform, Floats, Floats] | None:
        """Nothing to split off: the loss has a density."""
        return None

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """log M = sum theta a + log((1 - e^(-2 s a))/(2 s (1 - e^-a))), s = theta + 1/2, and two derivatives."""
        a, s = self.values, theta + 0.5
        x = s * a
        log = theta * a + np.log(np.expm1(-2 * x) / (2 * s * np.expm1(-a)))
        square = x * x
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # of the branch that is not taken
            first = np.where(x < _SMALL, x / 3 - x * square / 45, 1 / np.tanh(x) - 1 / x)
            second = np.where(x < _SMALL, 1 / 3 - square / 15, 1 / square - np.sinh(np.minimum(x, 300.0)) ** -2)
        return float(self.counts @ log), float(self.counts @ (a * first)), float(self.counts @ (a * a * second))

    def log_mgf_error(self, theta: float) -> float:
        """Each term of `cumulants` is off by at most 16 units in the last place of 1 + (|theta| + 1) a."""
        return 16 * UNIT * (float(self.counts.sum()) + 2 * (abs(theta) + 1) * self._reach + 1)

    def spectrum(self, tilt: float, frequencies: Floats) -> tuple[Complexes, Floats]:
        """A factor is s/(s + i t) (cos(t a) + i coth(s a) sin(t a)), at most 1 in modulus.

        It is off by at most 24 (1 + t a) units in the last place of 1: an error of the angle, t a units, is multiplied
        by coth(s a) <= 1 + 1/(s a), and by the factor before it, which is at most s/t and at most 1.
        """
        s = tilt + 0.5
        product: Complexes = np.ones(frequencies.shape, dtype=np.complex128)
        turned = np.empty_like(product[:_TOGETHER])
        for begin in range(0, frequencies.size, _TOGETHER):
            t, block = frequencies[begin : begin + _TOGETHER], product[begin : begin + _TOGETHER]
            lead, factor = s / (s + 1j * t), turned[: t.size]
            for a, n in zip(self.values, self.counts, strict=True):
                angle = a * t
                np.cos(angle, out=factor.real)
                np.multiply(np.sin(angle), 1 / math.tanh(s * a), out=factor.imag)
                np.multiply(factor, lead, out=factor)
                block *= whole_power(factor, float(n))
        return product, 64 * UNIT * (1 + float(self.counts.sum()) + (s + frequencies) * self._reach)

    def decay(self, tilt: float, low: float, high: float) -> float:
        """|factor| <= s coth(s a)/sqrt(s^2 + t^2), and at most 1."""
        s = tilt + 0.5
        bound = np.log(s / np.tanh(s * self.values) / math.hypot(s, low)) + ROUNDINGS_8192
        return math.exp(max(float(self.counts @ np.minimum(bound, 0.0)), -700.0))


@dataclass(frozen=True, eq=False)
class LogisticLoss(RatioLoss):
    """The loss of logistic noise whose ratios |v_i|/s_i add up to at most `pure` over the sensitivity set.

    Parameters: `pure`, `ratios` and `worst` as in `RatioLoss`.

    Guarantee: (pure, 0)-DP. For delta > 0 and a `worst` difference the bracket holds the exact profile; where more
    than 32 ratios differ they are rounded up for the upper end, and the lower end is that of the largest. On other
    sets the upper end is that of one coordinate that carries the whole of `pure`.

    Example:
        >>> round(LogisticLoss(1.0, [1.0], worst=True).delta(0.0).upper, 6)  # tanh(1/4)
        0.244919
    """

    @cached_property
    def _rounded(self) -> bool:
        return np.unique(self.ratios[self.ratios > 0]).size > _MOST_VALUES

    @cached_property
    def total(self) -> LogisticSum:
        ratios = self.ratios[self.ratios > 0]
        if self._rounded:
            steps = np.geomspace(float(ratios.min()), float(ratios.max()), _MOST_VALUES) * ABOVE_8192
            ratios = steps[np.minimum(np.searchsorted(steps, ratios), _MOST_VALUES - 1)]
        return _summed(ratios)

    def sum_profile(self, epsilon: Floats, total: object = None) -> tuple[Floats, Floats]:
        lower, upper = super().sum_profile(epsilon)
        return (np.zeros_like(lower) if self._rounded else lower), upper

    def sum_renyi(self, order: float, total: Terms | None = None) -> Bracket:
        """From the ratios as they are: moments need no few of them."""
        return super().sum_renyi(order, _summed(self.ratios[self.ratios > 0]))

    def _simple(self, epsilon: Floats) -> tuple[Floats, Floats]:
        lower = _single(epsilon, float(self.ratios.max()) * BELOW_32) * BELOW_128 - _TINY
        upper = _single(epsilon, self.pure) * ABOVE_128 + np.where(epsilon < self.pure, _TINY, 0.0)
        upper = np.minimum(upper, 1.0)
        return np.clip(lower, 0.0, upper), upper


def _summed(ratios: Floats) -> LogisticSum:
    """The sum of ratios > 0; faint ones are raised a little, by less than their rounding is allowed for."""
    values, counts = np.unique(np.maximum(ratios, _FAINT * ratios.max()), return_counts=True)
    return LogisticSum(values, counts.astype(np.float64))


def _single(epsilon: Floats, ratio: float) -> Floats:
    """delta of one coordinate, to a few units in the last place (and what underflows)."""
    if ratio == 0:
        return np.zeros_like(epsilon)
    with np.errstate(under="ignore"):
        return np.asarray(np.square(np.expm1(np.minimum(epsilon - ratio, 0.0) / 2)) / -math.expm1(-ratio))
