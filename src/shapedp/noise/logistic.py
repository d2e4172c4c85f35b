"""Logistic noise: smooth at zero, with exponential tails; pure differential privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy import special

from shapedp.noise.base import Law, confidence_level, of_order, registered
from shapedp.noise.laplace import pure_scales
from shapedp.noise.request import Request
from shapedp.noise.spread import SpreadLaw
from shapedp.noise.tilted import certified, guided
from shapedp.numerics.arrays import Floats
from shapedp.privacy.losses import GaussianLoss
from shapedp.privacy.losses.logistic import LogisticLoss
from shapedp.sampling import Quantile
from shapedp.sampling.quantile import Enclosure, exponential
from shapedp.sensitivity import Box, Sensitivity

_GUARD = 64
_SLOPE = 10.0  # about d log delta/d log scale, to begin with


@dataclass(frozen=True)
class LogisticQuantile:
    """The logistic law of density e^-x/(1 + e^-x)^2.

    Guarantee: X = log((1 - u)/u). What `rounded_sum` knows of u >= 2^-24, |du| <= 2^-65 + 2^-52 u, moves X by at most
    |du|/(u (1 - u)) < 1.27 (2^-41 + 2^-52).
    """

    name: str = "logistic"

    def magnitude(self, u: Floats) -> None:
        """Replace u in place by log(u/(1 - u))."""
        special.logit(u, out=u)

    def tail(self, bound: Fraction, bits: int) -> Enclosure:
        """Return integers lo <= 2^bits/(1 + e^bound) <= hi, hi - lo <= 2, every step rounded outward."""
        if 7 * bound > 5 * bits:  # 1/(1 + e^b) < e^-b < 2^-(7 b/5)
            return 0, 1
        work = bits + _GUARD
        low, high = exponential(bound, work)
        whole, one = 1 << (bits + work), 1 << work
        return whole // (one + high), -(-whole // (one + low))


@registered(family="logistic", every_measure=True)
@dataclass(frozen=True, eq=False, init=False)
class Logistic(SpreadLaw):
    """Independent logistic coordinates of density e^(-x/s)/(s (1 + e^(-x/s))^2): `Logistic(s, dim=M)` or a vector.

    Parameters: `scale` is s, one number (with `dim`), one per coordinate, or one per block of `sizes`. The standard
    deviation of a coordinate is s pi/sqrt(3).

    Example:
        >>> round(Logistic(1.0, dim=1).second_moment, 6)  # pi^2/3
        3.289868
    """

    kind: ClassVar[str] = "logistic"
    phrase: ClassVar[str] = "logistic noise, independent in every coordinate"
    quantile: ClassVar[Quantile] = LogisticQuantile()

    def log_density(self, x: Floats) -> Floats:
        scales = self.spread.per_coordinate()
        z = np.abs(x) / scales
        return np.asarray((-z - 2 * np.log1p(np.exp(-z))).sum(-1) - np.log(scales).sum())

    def variances(self) -> Floats:
        return np.square(self.scales) * (math.pi**2 / 3)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """s^p 2 Gamma(p + 1) sum_k (-1)^(k-1) k^-p; the sum is log 2 at p = 1, (1 - 2^(1-p)) zeta(p) above."""
        series = math.log(2) if p == 1 else -math.expm1((1 - p) * math.log(2)) * float(special.zeta(p))
        return np.asarray(self.scales**p * (2 * math.gamma(p + 1) * series))

    def half_widths(self, confidence: float) -> Floats:
        """P(|n| <= c) = tanh(c/(2 s))."""
        return self.scales * (2 * math.atanh(confidence_level(confidence)))

    def _loss(self, sensitivity: Sensitivity) -> LogisticLoss:
        return LogisticLoss.under_noise(sensitivity, self.scales)

    @classmethod
    def fitted(cls, request: Request) -> Logistic:
        """The scales of pure DP; for delta > 0 that shape (on a box also the Gaussian's) shrunk until delta is met."""
        pure = pure_scales(request.sensitivity, request)
        own = cls.over(pure, request.sensitivity.dim)
        if request.delta == 0:
            return own
        shapes = [pure]
        if isinstance(request.sensitivity, Box):
            shapes.append(request.optimal_scales(request.sensitivity.profile, request.epsilon, order=2))

        def error(law: Law) -> float:
            return law.expected_error(request.error, request.weights)

        makers = [cls._shrinking(scales, request) for scales in shapes]
        tried = [guided(request.sensitivity, request, *maker) for maker in makers]
        starts = [start for start in tried if start is not None]
        found: list[Law] = [own]
        if len(starts) == len(makers):  # the shape that is to win is certified alone
            best = min(range(len(makers)), key=lambda i: error(makers[i][0](starts[i][0])))
            found += filter(None, [certified(request.sensitivity, request, *makers[best], starts[best])])
        if len(found) == 1:
            found += filter(None, (certified(request.sensitivity, request, *maker) for maker in makers))
        return min((law for law in found if isinstance(law, Logistic)), key=error)

    @classmethod
    def _shrinking(cls, scales: Floats, request: Request) -> tuple[Callable[[float], Law], float]:
        """Scales over a factor, 1 where a Gaussian of equal variance stands; and about d log delta/d log factor.

        For small ratios the loss of a coordinate is about uniform on [-a, a], of variance a^2/3.
        """
        sensitivity = request.sensitivity
        loss = LogisticLoss.under_noise(sensitivity, scales)
        epsilon, delta, slope = request.epsilon, request.delta, _SLOPE
        ratios = loss.ratios if loss.worst else np.array([loss.pure])
        start = max(epsilon / loss.pure, GaussianLoss.calibrate(epsilon, delta).mu / math.sqrt(ratios @ ratios / 3))
        if ratios.size == 1:  # e^((epsilon - a)/2) = 1 - sqrt(delta (1 - e^-a))
            a = epsilon
            for _ in range(60):
                a = epsilon - 2 * math.log1p(-math.sqrt(delta * -math.expm1(-a)))
            start, slope = a / float(ratios[0]), a / math.expm1((a - epsilon) / 2)
        return lambda x: cls.over(scales / (start * x), sensitivity.dim), slope

    @classmethod
    def why(cls, request: Request, law: Law) -> str:
        return "it is smooth at zero where Laplace noise has a peak, and its tails are as short"
