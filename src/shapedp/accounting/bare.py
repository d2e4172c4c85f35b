"""The loss of a mechanism of which only (epsilon, delta) is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from shapedp.boundary.values import plain
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative, probability
from shapedp.numerics.outward import BELOW_WIDE, ROUNDINGS_16
from shapedp.privacy import Bracket
from shapedp.privacy.conversions import pure_to_rdp
from shapedp.privacy.losses.base import Loss, Pieces

_TINY = 5e-324  # by which a number below the normal range may be off


@dataclass(frozen=True)
class BareLoss(Loss):
    """The worst loss that (epsilon, delta)-DP allows: everything with probability delta, else randomised response.

    Guarantee: every (epsilon, delta)-DP mechanism is dominated by this pair, so compositions of it are valid for any;
    with all parameters equal they are Kairouz, Oh and Viswanath's optimum. `pure_epsilon` is the spacing of its atoms.
    `attained` says that the mechanism is this worst case; where it is some mechanism that meets the guarantee, nothing
    is known from below.
    Reference: Kairouz, Oh and Viswanath 2017, Theorems 3.3 and 3.4.

    Example:
        >>> round(BareLoss(1.0, 1e-6).delta(0.5).upper, 4)
        0.2876
    """

    pure_epsilon: float
    failure: float = 0.0
    attained: bool = True

    def __post_init__(self) -> None:
        plain(self)
        super().__post_init__()
        object.__setattr__(self, "pure_epsilon", nonnegative("epsilon", self.pure_epsilon))
        object.__setattr__(self, "failure", probability("delta", self.failure))

    @property
    def pure(self) -> float:  # type: ignore[override]
        return math.inf if self.failure else self.pure_epsilon

    def pieces(self) -> Pieces:
        finite = ((replace(self, failure=0.0), 1),)
        if not self.attained:  # nothing is shown by a failure that may never happen
            return Pieces(finite, failure=self.failure)
        return Pieces(finite, certain=self.failure, spoilt=self.failure)

    @property
    def lattice(self) -> float | None:
        """The loss takes the values -epsilon and epsilon (and infinity)."""
        return self.pure_epsilon or None

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """delta + (1 - delta) (e^E - e^eps)_+/(1 + e^E), E the mechanism's epsilon."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        gap = -np.expm1(np.minimum(epsilon - self.pure_epsilon, 0.0)) / (1 + math.exp(-self.pure_epsilon))
        finite = (1 - self.failure) * gap
        inside = epsilon < self.pure_epsilon  # beyond the mechanism's own epsilon delta is its own, exactly
        upper = np.where(inside, np.minimum((self.failure + finite) * (1 + ROUNDINGS_16) + _TINY, 1.0), self.failure)
        if not self.attained:
            return np.zeros_like(upper), upper
        shown = np.maximum((self.failure + finite) * (1 - ROUNDINGS_16) - _TINY, 0.0)
        return np.where(inside, shown, self.failure), upper

    def epsilon(self, delta: float) -> Bracket:
        target, own = probability("delta", delta), self.pure_epsilon
        if target < self.failure:
            return Bracket(math.inf if self.attained else 0.0, math.inf)
        if target == self.failure:
            return Bracket(own if self.attained else 0.0, own)
        found = super().epsilon(target)
        return Bracket(min(found.lower, own), min(found.upper, own))

    def renyi(self, alpha: float) -> Bracket:
        if self.failure:
            raise ValueError("(epsilon, delta)-DP with delta > 0 implies no finite Renyi divergence")
        value = pure_to_rdp(self.pure_epsilon, alpha)
        faint = 4 * (_TINY / (alpha - 1)) + 4 * _TINY  # what was added for numbers below the normal range, and more
        return Bracket(max(value * BELOW_WIDE - faint, 0.0) if self.attained else 0.0, value)
