"""What is held against a mechanism: a claim, and where it is known the whole privacy profile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative, probability
from shapedp.privacy import Loss


@dataclass(frozen=True, eq=False)
class Claim:
    """(epsilon, delta)-DP, and a loss whose whole profile is claimed too.

    Guarantee: `delta_at(e)` is what the claim implies at every e >= 0: a mechanism above it anywhere breaks the
    claim. From (epsilon, delta) alone it is the profile of the worst mechanism that meets it.
    Reference: Kairouz, Oh and Viswanath 2015, Theorem 2.5 (randomised response dominates).
    """

    epsilon: float
    delta: float
    loss: Loss | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def implied(self, epsilon: Floats) -> Floats:
        """What (epsilon, delta) alone implies: delta + (1 - delta) (e^E - e^e)/(1 + e^E) below E, delta above."""
        gap = -np.expm1(np.minimum(epsilon - self.epsilon, 0.0)) / (1 + math.exp(-self.epsilon))
        return np.asarray(self.delta + (1 - self.delta) * gap)

    def delta_at(self, epsilon: Floats) -> Floats:
        """The least delta that the claim or the loss promises at each epsilon."""
        at = np.asarray(epsilon, dtype=np.float64)
        promised = self.implied(at)
        if self.loss is None:
            return promised
        upper = self.loss.profile(at)[1]
        if not self.loss.symmetric:
            upper = np.maximum(upper, self.loss.profile(at, reverse=True)[1])
        return np.minimum(promised, upper)

    def broken(self, epsilon: float, promised: float) -> str:
        """Which promise is the smaller one, given that they come to `promised` here: the claim or the loss."""
        return "claim" if self.implied(np.array([epsilon]))[0] <= promised else "loss"

    @cached_property
    def points(self) -> tuple[Floats, Floats]:
        """The grid and what is promised on it."""
        at = self.grid()
        return at, self.delta_at(at)

    def grid(self) -> Floats:
        """The epsilons at which the profile is tested: around the claim, on both sides, from 0 on."""
        ratios = np.array([0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 1.15, 1.3, 1.5, 1.75, 2, 2.5, 3, 4, 6, 10])
        base = self.epsilon if self.epsilon > 0 else 1.0
        return np.unique(np.concatenate([ratios * base, [self.epsilon]]))
