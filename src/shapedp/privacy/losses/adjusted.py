"""A loss with a determinant factor, a failure event or a sampler's error on top."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Floats, Loss


@dataclass(frozen=True)
class AdjustedLoss(Loss):
    """An upper bound on the loss of a mechanism that differs from `base` in a bounded way.

    Guarantee: delta(e) <= base.delta(e - log_ratio) + failure + (1 + e^e) total_variation, capped at 1.
    The lower end drops what the adjustment may have hidden: it is 0 as soon as log_ratio > 0.
    """

    base: Loss
    log_ratio: float = 0.0
    failure: float = 0.0
    total_variation: float = 0.0

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.base.symmetric

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        lower, upper = self.base.hockey_stick(epsilon - self.log_ratio, reverse=reverse)
        with np.errstate(over="ignore"):
            ratio = np.exp(epsilon)
            extra = self.failure + ((1 + ratio) * self.total_variation if self.total_variation else 0.0)
            if extra is not self.failure or self.failure:
                upper = np.minimum((upper + extra) * (1 + 2.0**-50), 1.0)
        if self.log_ratio:
            return np.zeros_like(lower), upper
        hidden = self.failure + self.total_variation
        if hidden:
            with np.errstate(over="ignore"):
                lower = np.maximum((1 - self.failure) * lower - (1 + ratio) * hidden * (1 + 2.0**-50), 0.0)
        return lower, upper

    def renyi(self, alpha: float) -> Bracket:
        if self.failure or self.total_variation:
            raise ValueError("a loss with a failure probability has no finite Renyi divergence")
        base = self.base.renyi(alpha)
        return Bracket(0.0 if self.log_ratio else base.lower, base.upper + self.log_ratio * alpha / (alpha - 1))
