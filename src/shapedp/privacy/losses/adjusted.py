"""A loss with a determinant factor, a failure event or a sampler's error on top."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Floats, Loss, with_sampler_error


@dataclass(frozen=True)
class AdjustedLoss(Loss):
    """The loss of a mechanism that differs from `base` in a bounded way.

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
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lower, known = self._moved(epsilon, reverse)

        def failed(points: Floats) -> Floats:
            upper = known if points is epsilon else self._moved(points, reverse)[1]
            return np.minimum((upper + self.failure) * (1 + 2.0**-50), 1.0) if self.failure else upper

        missed = self.total_variation
        upper = with_sampler_error(failed, epsilon, missed) if missed else failed(epsilon)
        if self.log_ratio:
            return np.zeros_like(lower), upper
        if self.failure or missed:
            with np.errstate(over="ignore"):
                hidden = (1 + np.exp(epsilon)) * (1 + 2.0**-50) * (self.failure + missed)
            lower = np.maximum((1 - self.failure) * lower * (1 - 2.0**-50) - hidden, 0.0)
        return lower, upper

    def _moved(self, epsilon: Floats, reverse: bool) -> tuple[Floats, Floats]:
        at = np.nextafter(epsilon - self.log_ratio, -np.inf) if self.log_ratio else epsilon
        return self.base.hockey_stick(at, reverse=reverse)

    def renyi(self, alpha: float) -> Bracket:
        if self.failure or self.total_variation:
            raise ValueError("a loss with a failure probability has no finite Renyi divergence")
        base = self.base.renyi(alpha)
        if not self.log_ratio:
            return base
        return Bracket(0.0, (base.upper + self.log_ratio) * (1 + 2.0**-50))
