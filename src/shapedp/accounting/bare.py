"""The loss of a mechanism of which only (epsilon, delta) is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shapedp.numerics.checks import nonnegative, probability
from shapedp.privacy import Bracket
from shapedp.privacy.conversions import pure_to_rdp
from shapedp.privacy.losses.base import Floats, Loss

_ROUND = 2.0**-49


@dataclass(frozen=True)
class BareLoss(Loss):
    """The worst loss that (epsilon, delta)-DP allows: everything with probability delta, else randomised response.

    Guarantee: every (epsilon, delta)-DP mechanism is dominated by this pair, so compositions of it are valid for any;
    with all parameters equal they are Kairouz, Oh and Viswanath's optimum. `pure_epsilon` is the spacing of its atoms.
    Reference: Kairouz, Oh and Viswanath 2017, Theorems 3.3 and 3.4.
    """

    pure_epsilon: float
    failure: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "pure_epsilon", nonnegative("epsilon", self.pure_epsilon))
        object.__setattr__(self, "failure", probability("delta", self.failure))

    @property
    def lattice(self) -> float | None:
        """The loss takes the values -epsilon and epsilon (and infinity)."""
        return self.pure_epsilon or None

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """delta + (1 - delta) (e^E - e^eps)_+/(1 + e^E), E the mechanism's epsilon."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        gap = -np.expm1(np.minimum(epsilon - self.pure_epsilon, 0.0)) / (1 + math.exp(-self.pure_epsilon))
        finite = (1 - self.failure) * gap
        lower = self.failure * (1 - _ROUND) + finite * (1 - _ROUND)
        upper = self.failure * (1 + _ROUND) + np.where(finite > 0, finite * (1 + _ROUND), 0.0)
        return lower, np.minimum(upper, 1.0)

    def renyi(self, alpha: float) -> Bracket:
        if self.failure:
            raise ValueError("(epsilon, delta)-DP with delta > 0 implies no finite Renyi divergence")
        value = pure_to_rdp(self.pure_epsilon, alpha)
        return Bracket(value * (1 - 2.0**-30), value)
