"""What every privacy loss answers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics import SearchError, first_true, last_true
from shapedp.numerics.checks import nonnegative, probability
from shapedp.privacy.bracket import Bracket

if TYPE_CHECKING:
    from shapedp.privacy.losses.discrete import DiscreteLoss

Floats = NDArray[np.float64]
EPSILON_LIMIT = 1e6


class Loss(ABC):
    """The privacy loss L = log dP/dQ of a dominating pair (P, Q), and of its reverse (Q, P).

    A subclass writes one formula, `profile`; everything else follows from it. The forward direction is
    (P, Q), the reverse is (Q, P): each composes on its own and the maximum is taken last.
    """

    symmetric: bool = True

    @abstractmethod
    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper bounds on E_P[(1 - e^(epsilon - L))_+] at each epsilon >= 0.

        Guarantee: lower <= truth <= upper in every entry, rounding included.
        """

    def hockey_stick(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """`profile` at every real epsilon: H(P, Q; -e) = 1 - e^-e + e^-e H(Q, P; e)."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lower, upper = self.profile(np.abs(epsilon), reverse=reverse)
        below = epsilon < 0
        if not below.any():
            return lower, upper
        mirrored = self.profile(-epsilon[below], reverse=not reverse)
        base, factor = -np.expm1(epsilon[below]), np.exp(epsilon[below])
        lower, upper = lower.copy(), upper.copy()
        lower[below] = np.maximum(base + factor * mirrored[0] - 2.0**-50, 0.0)
        upper[below] = np.minimum(base + factor * mirrored[1] + 2.0**-50, 1.0)
        return lower, upper

    def delta(self, epsilon: float) -> Bracket:
        """The least delta for which (epsilon, delta)-DP holds: the larger of the two directions."""
        at = np.array([nonnegative("epsilon", epsilon)])
        bracket = Bracket(*(float(end[0]) for end in self.profile(at)))
        if self.symmetric:
            return bracket
        return bracket.max(Bracket(*(float(end[0]) for end in self.profile(at, reverse=True))))

    def epsilon(self, delta: float) -> Bracket:
        """The least epsilon for which (epsilon, delta)-DP holds.

        Guarantee: at `upper` the upper bound on delta is at most the delta asked for; `upper` is infinite
        where none up to 1e6 was found.
        """
        target = probability("delta", delta)
        try:
            upper = first_true(lambda e: self.delta(e).upper <= target, 0.0, EPSILON_LIMIT)
        except SearchError:
            upper = math.inf
        try:
            lower = last_true(lambda e: self.delta(e).lower > target, 0.0, min(upper, EPSILON_LIMIT))
        except SearchError:
            lower = 0.0
        return Bracket(min(lower, upper), upper)

    def renyi(self, alpha: float) -> Bracket:
        """The Renyi divergence of order alpha > 1, the larger of the two directions."""
        raise ValueError(f"{type(self).__name__} has no Renyi curve")

    def discretize(self, **options: Any) -> DiscreteLoss:
        """This loss on a grid, bounded from both sides, ready to be composed."""
        from shapedp.privacy.losses.discrete import DiscreteLoss

        return DiscreteLoss.of(self, **options)

    def shift(self, log_ratio: float) -> Loss:
        """The loss L + log_ratio, L distributed as before: a determinant factor.

        Guarantee: in each direction (P, Q), holds for P against any Q' >= e^(-log_ratio) Q. Where P changes too,
        P' <= e^s P, it does not: that costs a factor e^s on delta besides.
        """
        from shapedp.privacy.losses.adjusted import AdjustedLoss

        return AdjustedLoss(self, log_ratio=nonnegative("log_ratio", log_ratio))

    def with_failure(self, p: float, *, total_variation: float = 0.0) -> Loss:
        """The loss when nothing is promised on an event of probability p.

        `total_variation` is the distance between what a sampler draws and the law it should draw: it costs
        (1 + e^epsilon) times as much, since it also makes likely outputs of the neighbour less likely.
        """
        from shapedp.privacy.losses.adjusted import AdjustedLoss

        return AdjustedLoss(
            self, failure=probability("p", p), total_variation=probability("total_variation", total_variation)
        )
