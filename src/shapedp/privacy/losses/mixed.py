"""The privacy loss of noise that is Laplace on some coordinates and Gaussian on the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import nonnegative, vector
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.numerics.outward import ROUNDINGS_32
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import renyi_order
from shapedp.privacy.losses.sums import SumLoss

_SMALL_SUM = 700.0
MU_ERROR = ROUNDINGS_32  # relative error of mu as it is computed; delta increases with mu


@dataclass(frozen=True, eq=False)
class MixedLoss(SumLoss):
    """The loss of a corner of a box: Laplace coordinates of ratios l_i/b_i and a Gaussian part mu = |l/sigma|_2.

    Guarantee: the bracket holds the exact profile of the sum; the corner is the worst point of the box because the
    noise is log-concave (see `LaplaceLoss`).

    Parameters: `ratios`, and `mu`.

    Example:
        >>> round(MixedLoss([0.5, 0.2], 0.3).delta(0.5).upper, 4)
        0.0795
    """

    ratios: Floats
    mu: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mu", nonnegative("mu", self.mu))
        object.__setattr__(self, "ratios", frozen(vector("ratios", self.ratios, least=0.0)))

    @cached_property
    def total(self) -> LaplaceSum:
        return LaplaceSum.of(self.ratios, self.mu)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        if self.mu > 30 or float(self.ratios.sum()) > _SMALL_SUM:
            return np.zeros_like(epsilon), np.ones_like(epsilon)
        lower, _ = self.sum_profile(epsilon, replace(self.total, deviation=self.mu * (1 - MU_ERROR)))
        _, upper = self.sum_profile(epsilon, replace(self.total, deviation=self.mu * (1 + MU_ERROR)))
        return np.minimum(lower, upper), upper

    def renyi(self, alpha: float) -> Bracket:
        """log M(alpha - 1)/(alpha - 1) of the sum."""
        found = self.sum_renyi(renyi_order(alpha))
        slip = 4 * MU_ERROR * found.upper
        return Bracket(max(found.lower - slip, 0.0), found.upper + slip)

    def _top(self) -> float:
        """Pure epsilon of the Laplace part, and of the Gaussian part where its delta is below 1e-300."""
        return float(self.ratios.sum()) + self.mu * (self.mu / 2 + 40)
