"""The privacy loss of Laplace noise: pure differential privacy, and the exact profile of K coordinates."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import cached_property, singledispatch

import numpy as np

from shapedp.boundary.values import booleans
from shapedp.noise import DiscreteLaplace, Laplace
from shapedp.numerics import sum_bounds
from shapedp.numerics.arrays import frozen
from shapedp.numerics.checks import nonnegative, numeric, real, vector
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Floats
from shapedp.privacy.losses.gaussian import renyi_order
from shapedp.privacy.losses.pairing import loss_of
from shapedp.privacy.losses.sums import SumLoss
from shapedp.sensitivity import L1, Box, Sensitivity

_TINY = 5e-324  # by which a number below the normal range may be off
_SMALL_SUM = 700.0  # beyond it the ratios alone make every delta 1 to within e^-300


@dataclass(frozen=True, eq=False)
class LaplaceLoss(SumLoss):
    """The loss of Laplace noise whose ratios |v_i|/b_i add up to at most `pure` over the sensitivity set.

    `ratios` belong to one difference of the set, with `continuous` noise or noise on a grid; `worst` says that this
    difference is the worst of the set: a corner of a box, a vertex of an L1 ball. Noise on a grid is dominated by the
    continuous noise of a coordinate whose ratio is `wider`, where that is known.

    Guarantee: (pure, 0)-DP. For delta > 0 and a `worst` difference the bracket holds the exact profile of the sum of
    the coordinates' losses; otherwise the upper end is that of one coordinate that carries the whole of `pure`, a
    vertex of the cross-polytope around the set (on a grid: the worst any (pure, 0)-DP mechanism can do, randomised
    response), and the lower end what `ratios` shows.
    For log-concave noise min(p(x), e^eps p(x + v)) is jointly log-concave, so that delta is quasi-convex in v
    (Prekopa 1973) and largest at a vertex of a polytope; all vertices of a box are alike.
    Reference: Dwork, McSherry, Nissim and Smith 2006, Proposition 1; Kairouz, Oh and Viswanath 2015, Theorem 2.5.
    """

    pure: float = field()
    ratios: Floats = field(default_factory=lambda: np.zeros(1))
    continuous: bool = True
    worst: bool = False
    wider: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        booleans(self)
        pure, given = real("pure", self.pure), numeric("ratios", self.ratios).astype(np.float64, copy=False)
        object.__setattr__(self, "pure", pure if pure == math.inf else nonnegative("pure", pure))
        vector("ratios", np.minimum(given, sys.float_info.max), least=0.0)
        object.__setattr__(self, "ratios", frozen(given))
        if self._sum > pure * (1 + 2.0**-40):
            raise ValueError(f"ratios must add up to at most pure = {pure!r}, got {self._sum!r}")

    @property
    def dominating(self) -> float:
        """The ratio of continuous noise on one coordinate that dominates this loss; infinite where none is known."""
        return self.pure if self.continuous else self.wider

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return self._sum == math.inf

    @property
    def slow(self) -> bool:  # type: ignore[override]
        return self.continuous and self.ratios.size > 1

    @cached_property
    def total(self) -> LaplaceSum:
        return LaplaceSum.of(self.ratios)

    @cached_property
    def _sum(self) -> float:
        top = float(self.ratios.max())
        return max(sum_bounds(self.ratios)[0], 0.0) if math.isfinite(top) else math.inf

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lower, upper = self._simple(epsilon)
        inside = (epsilon < self.pure) & (epsilon < self._sum)
        if self.continuous and self.ratios.size > 1 and 0 < self._sum < _SMALL_SUM and inside.any():
            low, high = self.sum_profile(epsilon[inside])
            lower[inside] = np.maximum(lower[inside], low)
            if self.worst:
                upper[inside] = np.maximum(np.minimum(upper[inside], high), lower[inside])
        return lower, upper

    def _simple(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """What the largest ratio alone and the event that every coordinate is at its top show; the worst vertex."""
        top = float(self.ratios.max())
        with np.errstate(under="ignore", over="ignore"):
            single = -np.expm1(np.minimum(epsilon - top * (1 - 2.0**-48), 0.0) / 2)
            if self.continuous:
                upper = -np.expm1(np.minimum(epsilon - self.pure, 0.0) / 2)
            else:
                upper = -np.expm1(np.minimum(epsilon - self.pure, 0.0)) / (1 + math.exp(-self.pure))
            if not self.continuous:
                single = -0.5 * np.expm1(np.minimum(epsilon - top, 0.0))
            all_up = -(0.5 ** min(self.ratios.size, 1100)) * np.expm1(np.minimum(epsilon - self._sum, 0.0))
        lower = np.maximum(np.maximum(single, all_up) * (1 - 2.0**-50) - _TINY, 0.0)
        upper = np.where(epsilon < self.pure, np.minimum(upper * (1 + 2.0**-50) + _TINY, 1.0), 0.0)
        return np.minimum(lower, upper), upper

    def renyi(self, alpha: float) -> Bracket:
        """log M(alpha - 1)/(alpha - 1) of the sum where the difference is the worst; at most alpha pure^2/2 and pure.

        Reference: Mironov 2017, Proposition 6; Bun and Steinke 2016, Proposition 1.4.
        """
        order = renyi_order(alpha)
        upper = min(order * self.pure**2 / 2, self.pure) * (1 + 2.0**-50)
        if not self.continuous or not 0 < self._sum < _SMALL_SUM:
            return Bracket(0.0, upper)
        value = self.total.cumulants(order - 1)[0] / (order - 1)
        slip = self.total.log_mgf_error(order - 1) / (order - 1) + order * self._slack + 2.0**-50 * value
        lower = max(value - slip, 0.0)
        if self.worst:
            upper = min(upper, value + slip)
        return Bracket(min(lower, upper), upper)

    def _top(self) -> float:
        return self.pure if math.isfinite(self.pure) else super()._top()


@singledispatch
def worst_ratios(sensitivity: Sensitivity, scales: Floats) -> tuple[Floats, bool]:
    """Ratios |v_i|/b_i of one difference of the set, and whether it is the worst for log-concave noise."""
    return _over(sensitivity.extreme(), scales), False


@worst_ratios.register(Box)
def _box(sensitivity: Box, scales: Floats) -> tuple[Floats, bool]:
    return _over(sensitivity.profile, scales), True


@worst_ratios.register(L1)
def _cross(sensitivity: L1, scales: Floats) -> tuple[Floats, bool]:
    """The vertex along the coordinate of least noise."""
    return _over(np.array([sensitivity.radius]), np.array([float(scales.min())])), True


@loss_of.register(Laplace)
def _laplace(law: Laplace, sensitivity: Sensitivity) -> LaplaceLoss:
    ratios, worst = worst_ratios(sensitivity, law.scales)
    return LaplaceLoss(sensitivity.l1_reach(law.scales)[1], ratios, worst=worst)


@loss_of.register(DiscreteLaplace)
def _discrete(law: DiscreteLaplace, sensitivity: Sensitivity) -> LaplaceLoss:
    """Rounding the input moves each coordinate by at most one more grid step: sum 1/steps on top.

    Whole numbers on a grid of 1 or less are not rounded.

    With q = e^(-1/steps) a shift by s steps has delta(eps) = 1 - min over x of (q^x + e^eps q^(s - x))/(q^-1/2 + q^1/2)
    <= 1 - e^((eps - s/steps)/2)/cosh(1/(2 steps)): that of continuous noise of ratio s/steps + 2 log cosh(1/(2 steps)),
    the latter at most 1/(4 steps^2).
    """
    moving = ~sensitivity.fixed() if law.steps.size > 1 else np.ones(1, dtype=np.bool_)
    with np.errstate(divide="ignore"):
        extra = float((1 / law.steps[moving]).sum()) * (law.dim if law.steps.size == 1 else 1) * (1 + 2.0**-40)
        finer = float((0.25 / law.steps[moving] ** 2).sum()) * (law.dim if law.steps.size == 1 else 1)
    whole = np.floor(sensitivity.extreme() / law.grid) * law.grid
    reach = sensitivity.l1_reach(law.scales)[1]
    shown = _over(whole, law.scales) * (1 - 2.0**-50)
    pure = (reach + (0.0 if sensitivity.unrounded(law.grid) else extra)) * (1 + 2.0**-50)
    return LaplaceLoss(pure, shown, continuous=False, wider=(pure + finer) * (1 + 2.0**-40))


def _over(difference: Floats, scales: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = difference / scales
    ratios = np.where(difference == 0, 0.0, ratios)
    return ratios[ratios > 0] if (ratios > 0).any() else np.zeros(1)
