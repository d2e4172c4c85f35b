"""A loss with a determinant factor, a failure event or a sampler's error on top."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8, BELOW_8
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Loss, Pieces, with_sampler_error


@dataclass(frozen=True)
class AdjustedLoss(Loss):
    """The loss of a mechanism that differs from `base` in a bounded way.

    Guarantee: delta(e) <= e^slip (base.delta(e - log_ratio - 2 slip) + failure) + (1 + e^e) total_variation, capped
    at 1: both released laws are within e^slip of those of `base`. The lower end drops what the adjustment may have
    hidden, and is 0 as soon as log_ratio > 0; for slip it is that of the laws claimed about.

    Example:
        >>> from shapedp import LaplaceLoss
        >>> round(AdjustedLoss(LaplaceLoss(1.0), log_ratio=0.5).pure, 9)
        1.5
    """

    base: Loss
    log_ratio: float = 0.0
    failure: float = 0.0
    total_variation: float = 0.0
    slip: float = 0.0

    def __post_init__(self) -> None:
        self._inherit([self.base])

    @property
    def slow(self) -> bool:  # type: ignore[override]
        return self.base.slow

    @property
    def settled(self) -> bool:  # type: ignore[override]
        return self.base.settled

    @property
    def pure(self) -> float:  # type: ignore[override]
        return self.pieces().pure

    def pieces(self) -> Pieces:
        names = ("log_ratio", "failure", "total_variation", "slip")
        return self.base.pieces().adjusted(**{name: getattr(self, name) for name in names})

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.base.symmetric

    def _ends(self, epsilon: Floats, reverse: bool = False) -> tuple[Floats, Floats]:
        """The lower end of `base`, moved, and the upper end with all that the adjustment may cost."""
        lower, known = self._moved(epsilon, reverse)

        def failed(points: Floats) -> Floats:
            upper = known if points is epsilon else self._moved(points, reverse)[1]
            if not self.failure and not self.slip:
                return upper
            return np.minimum((upper + self.failure) * (math.exp(self.slip) * ABOVE_8), 1.0)

        missed = self.total_variation
        return lower, with_sampler_error(failed, epsilon, missed) if missed else failed(epsilon)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        lower, upper = self._ends(epsilon, reverse)
        if self.log_ratio:
            return np.zeros_like(lower), upper
        if self.slip:
            lower = self.base.profile(epsilon, reverse=reverse)[0]
        return self._left(lower, epsilon), upper

    def _left(self, lower: Floats, epsilon: Floats) -> Floats:
        """What is left of a lower end after what failures and the sampler may hide."""
        if not self.failure and not self.total_variation:
            return lower
        with np.errstate(over="ignore"):
            hidden = (1 + np.exp(epsilon)) * ABOVE_8 * (self.failure + self.total_variation)
        return np.maximum((1 - self.failure) * lower * BELOW_8 - hidden, 0.0)

    def best_shown(self, epsilon: float) -> float:
        if self.log_ratio:
            return 0.0
        shown = self.base.best_shown(epsilon)
        return float(self._left(np.array([shown]), np.array([epsilon]))[0]) if shown else 0.0

    def _moved(self, epsilon: Floats, reverse: bool) -> tuple[Floats, Floats]:
        back = self.log_ratio + 2 * self.slip
        at = np.nextafter(epsilon - back, -np.inf) if back else epsilon
        return self.base.hockey_stick(at, reverse=reverse)

    def renyi(self, alpha: float) -> Bracket:
        if self.failure or self.total_variation or self.slip:
            raise ValueError("a loss with a failure probability has no finite Renyi divergence")
        base = self.base.renyi(alpha)
        if not self.log_ratio:
            return base
        return Bracket(0.0, (base.upper + self.log_ratio) * ABOVE_8)
