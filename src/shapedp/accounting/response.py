"""The loss of randomised response over several answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, probability
from shapedp.numerics.outward import ROUNDINGS_16, ROUNDINGS_32
from shapedp.privacy import Bracket
from shapedp.privacy.losses.base import Loss, renyi_order

_TINY = 5e-324


@dataclass(frozen=True)
class ResponseLoss(Loss):
    """The true answer, or with probability `noise` one of `answers` drawn uniformly.

    Guarantee: exact up to rounding. The true answer has probability a = 1 - noise + noise/answers, each other one
    b = noise/answers, so that delta(eps) = (a - e^eps b)_+ and the loss is log(a/b), -log(a/b) or 0.
    Reference: Kairouz, Bonawitz and Ramage 2016, section 3 (k-ary randomised response).
    """

    noise: float
    answers: int

    def __post_init__(self) -> None:
        super().__post_init__()
        noise = 1.0 if self.noise == 1 else probability("noise", self.noise)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "answers", count("answers", self.answers))

    @cached_property
    def _epsilon(self) -> float:
        """log(a/b), up to rounding; infinite without noise."""
        if self.answers == 1 or self.noise == 1:
            return 0.0
        with np.errstate(over="ignore", divide="ignore"):
            return float(np.log1p(np.float64((1 - self.noise) * self.answers) / self.noise))

    @property
    def pure(self) -> float:  # type: ignore[override]
        return self._epsilon * (1 + ROUNDINGS_16)

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return self._epsilon == math.inf

    @property
    def lattice(self) -> float | None:
        return self._epsilon if 0 < self._epsilon < math.inf else None

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        true = 1 - self.noise + self.noise / self.answers
        move = 2 * ROUNDINGS_16 * min(self._epsilon, 1e300)
        with np.errstate(under="ignore"):
            upper = -np.expm1(np.minimum(epsilon - move - self._epsilon, 0.0)) * (true * (1 + ROUNDINGS_16))
            lower = -np.expm1(np.minimum(epsilon + move - self._epsilon, 0.0)) * (true * (1 - ROUNDINGS_16))
        upper = np.where(epsilon < self.pure, np.minimum(upper + _TINY, 1.0), 0.0)
        return np.minimum(np.maximum(lower - _TINY, 0.0), upper), upper

    def renyi(self, alpha: float) -> Bracket:
        """log(b (r^alpha + r^(1 - alpha) + answers - 2))/(alpha - 1), r = a/b."""
        order, ratio = renyi_order(alpha), self._epsilon
        if ratio in (0.0, math.inf):
            return Bracket(ratio, ratio)
        terms = [order * ratio, (1 - order) * ratio]
        terms += [math.log(self.answers - 2)] if self.answers > 2 else []
        scale = math.log(self.noise / self.answers)
        value = float(np.logaddexp.reduce(terms)) + scale
        slack = ROUNDINGS_32 * (1 + order * ratio + abs(scale))
        ends = (max(end, 0.0) / (order - 1) for end in (value - slack, value + slack))
        lower, upper = (min(end, self.pure) for end in ends)
        return Bracket(lower, upper)
