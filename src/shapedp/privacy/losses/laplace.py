"""The privacy loss of Laplace noise: pure differential privacy, and the exact profile of K coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.numerics.outward import ABOVE_8, BELOW_8, BELOW_32
from shapedp.privacy.losses.sums import RatioLoss

_TINY = 5e-324  # by which a number below the normal range may be off


@dataclass(frozen=True, eq=False)
class LaplaceLoss(RatioLoss):
    """The loss of Laplace noise whose ratios |v_i|/b_i add up to at most `pure` over the sensitivity set.

    Parameters: `pure`, `ratios` and `worst` as in `RatioLoss`; `continuous` noise, or noise on a grid. Noise on a grid
    is dominated by the continuous noise of a coordinate whose ratio is `wider`, where that is known.

    Guarantee: (pure, 0)-DP. Where `ratios` is not the worst difference, the upper end is that of one coordinate that
    carries the whole of `pure`, a vertex of the cross-polytope around the set (on a grid: the worst any (pure, 0)-DP
    mechanism can do, randomised response), and the lower end what `ratios` shows.
    Reference: Dwork, McSherry, Nissim and Smith 2006, Proposition 1; Kairouz, Oh and Viswanath 2015, Theorem 2.5.

    Example:
        >>> LaplaceLoss(1.0).epsilon(0.0).upper
        1.0
    """

    continuous: bool = True
    wider: float = math.inf

    @property
    def dominating(self) -> float:
        """The ratio of continuous noise on one coordinate that dominates this loss; infinite where none is known."""
        return self.pure if self.continuous else self.wider

    @property
    def summed(self) -> bool:
        return self.continuous

    @cached_property
    def total(self) -> LaplaceSum:
        return LaplaceSum.of(self.ratios)

    def _simple(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """What the largest ratio alone and the event that every coordinate is at its top show; the worst vertex."""
        top = float(self.ratios.max())
        with np.errstate(under="ignore", over="ignore"):
            if self.continuous:
                single = -np.expm1(np.minimum(epsilon - top * BELOW_32, 0.0) / 2)
                upper = -np.expm1(np.minimum(epsilon - self.pure, 0.0) / 2)
            else:
                single = -0.5 * np.expm1(np.minimum(epsilon - top, 0.0))
                upper = -np.expm1(np.minimum(epsilon - self.pure, 0.0)) / (1 + math.exp(-self.pure))
            all_up = -(0.5 ** min(self.ratios.size, 1100)) * np.expm1(np.minimum(epsilon - self._sum, 0.0))
        lower = np.maximum(np.maximum(single, all_up) * BELOW_8 - _TINY, 0.0)
        upper = np.where(epsilon < self.pure, np.minimum(upper * ABOVE_8 + _TINY, 1.0), 0.0)
        return np.minimum(lower, upper), upper
