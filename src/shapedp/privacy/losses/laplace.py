"""The privacy loss of Laplace noise: pure differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from shapedp.noise import DiscreteLaplace, Laplace
from shapedp.numerics import sum_bounds
from shapedp.numerics.checks import nonnegative, vector
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Floats, Loss
from shapedp.privacy.losses.gaussian import renyi_order
from shapedp.privacy.losses.pairing import loss_of
from shapedp.sensitivity import Sensitivity


@dataclass(frozen=True, eq=False)
class LaplaceLoss(Loss):
    """The loss of Laplace noise whose ratios |v_i|/b_i add up to at most `pure` over the sensitivity set.

    `ratios` belong to one difference of the set, with `continuous` noise or noise on a grid.
    Guarantee: (pure, 0)-DP. For delta > 0 the upper end is the worst any (pure, 0)-DP mechanism can do
    (randomised response; exact for one continuous coordinate), the lower end what `ratios` shows.
    Reference: Dwork, McSherry, Nissim and Smith 2006, Proposition 1; Kairouz, Oh and Viswanath 2015, Theorem 2.5.
    """

    pure: float
    ratios: Floats = field(default_factory=lambda: np.zeros(1))
    continuous: bool = True

    def __post_init__(self) -> None:
        if self.pure != math.inf:
            object.__setattr__(self, "pure", nonnegative("pure", self.pure))
        if not np.isinf(self.ratios).any():
            object.__setattr__(self, "ratios", vector("ratios", self.ratios, least=0.0))

    @property
    def _single(self) -> bool:
        """One continuous coordinate whose ratio is the whole: the profile is known in closed form."""
        return self.continuous and self.ratios.size == 1 and self.ratios[0] >= self.pure * (1 - 2.0**-40)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        with np.errstate(under="ignore", over="ignore"):
            if self._single:
                upper = -np.expm1(np.minimum(epsilon - self.pure, 0.0) / 2)
                lower = -np.expm1(np.minimum(epsilon - self.ratios[0], 0.0) / 2)
            else:
                upper = -np.expm1(np.minimum(epsilon - self.pure, 0.0)) / (1 + math.exp(-self.pure))
                top = float(self.ratios.max())
                total = max(sum_bounds(self.ratios)[0], 0.0) if math.isfinite(top) else math.inf
                lower = np.maximum(
                    -0.5 * np.expm1(np.minimum(epsilon - top, 0.0)),
                    -(0.5 ** min(self.ratios.size, 1100)) * np.expm1(np.minimum(epsilon - total, 0.0)),
                )
        return lower * (1 - 2.0**-50), np.where(upper > 0, np.minimum(upper * (1 + 2.0**-50), 1.0), 0.0)

    def renyi(self, alpha: float) -> Bracket:
        """Upper: min of alpha pure^2/2 and pure. Reference: Bun and Steinke 2016, Proposition 1.4 and Lemma 3.2."""
        return Bracket(0.0, min(renyi_order(alpha) * self.pure**2 / 2, self.pure) * (1 + 2.0**-50))


@loss_of.register(Laplace)
def _laplace(law: Laplace, sensitivity: Sensitivity) -> LaplaceLoss:
    return LaplaceLoss(sensitivity.l1_reach(law.scales)[1], _shown(law.scales, sensitivity))


@loss_of.register(DiscreteLaplace)
def _discrete(law: DiscreteLaplace, sensitivity: Sensitivity) -> LaplaceLoss:
    """Rounding the input moves each coordinate by at most one more grid step: sum 1/steps on top."""
    moving = ~sensitivity.fixed() if law.steps.size > 1 else np.ones(1, dtype=np.bool_)
    with np.errstate(divide="ignore"):
        extra = float((1 / law.steps[moving]).sum()) * (law.dim if law.steps.size == 1 else 1) * (1 + 2.0**-40)
    whole = np.floor(sensitivity.extreme() / law.grid) * law.grid
    reach = sensitivity.l1_reach(law.scales)[1]
    return LaplaceLoss((reach + extra) * (1 + 2.0**-50), _over(whole, law.scales), continuous=False)


def _over(difference: Floats, scales: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = difference / scales
    ratios = np.where(difference == 0, 0.0, ratios) * (1 - 2.0**-50)
    return ratios[ratios > 0] if (ratios > 0).any() else np.zeros(1)


def _shown(scales: Floats, sensitivity: Sensitivity) -> Floats:
    return _over(sensitivity.extreme(), scales)
