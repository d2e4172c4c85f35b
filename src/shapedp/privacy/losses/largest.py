"""The privacy loss of noise whose shift depends on the noise itself, within a polytope."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative
from shapedp.numerics.outward import ABOVE_32, BELOW_8
from shapedp.privacy.losses.base import Loss


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

    def _summed(self, epsilon: Floats) -> Floats:
        total = np.zeros_like(epsilon)
        for loss, count in self.parts:
            total += count * np.maximum(loss.profile(epsilon)[1], loss.profile(epsilon, reverse=True)[1])
        return np.minimum(total, 1.0)
