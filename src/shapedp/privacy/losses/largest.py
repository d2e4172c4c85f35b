"""The privacy loss of noise whose shift depends on the noise itself, within a polytope."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative
from shapedp.numerics.outward import ABOVE_32, BELOW_8, ROUNDINGS_512
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Loss, renyi_order
from shapedp.privacy.losses.gaussian import GaussianLoss


@dataclass(frozen=True)
class LargestLoss(Loss):
    """A loss that is at most log_ratio + the largest of 0 and the losses of `parts`, pointwise in the output.

    `parts` holds pairs (loss, count): that many shifts of noise share a loss.

    Guarantee: delta(e) <= sum of count times delta_part(e - log_ratio) for e >= log_ratio, as (1 - e^(a - max L))_+
    <= sum of (1 - e^(a - L))_+ and L = 0 adds nothing where a >= 0. Below, with a = e - log_ratio < 0,
    (1 - e^(a - m))_+ <= 1 - e^a + e^a (1 - e^-m)_+. Nothing is known from below.
    """

    parts: tuple[tuple[Loss, float], ...]
    log_ratio: float = 0.0

    def __post_init__(self) -> None:
        self._inherit(loss for loss, _ in self.parts)
        object.__setattr__(self, "log_ratio", nonnegative("log_ratio", self.log_ratio))
        if not all(0 < count < math.inf for _, count in self.parts):
            raise ValueError("parts must hold pairs (loss, count) with finite counts > 0")

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        left = np.nextafter(epsilon - self.log_ratio, -np.inf) if self.log_ratio else epsilon
        total = self._summed(np.maximum(left, 0.0))
        short = left < 0
        if short.any():
            factor = np.exp(left[short]) * BELOW_8
            total[short] = 1 - factor * (1 - total[short])
        upper = np.minimum(total * ABOVE_32, 1.0)
        return np.zeros_like(upper), upper

    def renyi(self, alpha: float) -> Bracket:
        """log_ratio + log(1 + sum of count E(e^((a - 1) L) - 1)_+)/(a - 1), for parts that are Gaussian.

        With X = e^((a - 1) L) of each part, max(1, X, ..) <= 1 + sum of (X - 1)_+, and for L normal of mean mu^2/2 and
        variance mu^2, E(X - 1)_+ = e^(a (a - 1) mu^2/2) Phi(mu (a - 1/2)) - Phi(mu/2).
        """
        order = renyi_order(alpha)
        if not all(isinstance(loss, GaussianLoss) for loss, _ in self.parts):
            raise ValueError("the largest of several losses has a Renyi curve where all of them are Gaussian")
        logs = [0.0]
        for loss, count in self.parts:
            mu: float = loss.mu  # type: ignore[attr-defined]
            rise = order * (order - 1) * mu**2 / 2 + float(special.log_ndtr(mu * (order - 0.5)))
            fall = float(special.log_ndtr(mu / 2))
            if not rise < math.inf:
                return Bracket(0.0, math.inf)
            inside = -math.expm1(fall - rise) if rise > fall else 0.0
            logs.append(math.log(count) + rise + math.log(inside) if inside > 0 else -math.inf)
        top = max(logs)
        total = top + math.log(math.fsum(math.exp(one - top) for one in logs))
        room = (abs(top) + 1) * ROUNDINGS_512  # of the logarithms, which are of this size
        return Bracket(0.0, (self.log_ratio + (total + room) / (order - 1)) * ABOVE_32)

    def _summed(self, epsilon: Floats) -> Floats:
        total = np.zeros_like(epsilon)
        for loss, count in self.parts:
            total += count * np.maximum(loss.profile(epsilon)[1], loss.profile(epsilon, reverse=True)[1])
        return np.minimum(total, 1.0)
