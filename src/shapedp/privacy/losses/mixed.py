"""The privacy loss of noise that is Laplace on some coordinates and Gaussian on the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch

import numpy as np

from shapedp.noise.mixed import Mixed
from shapedp.numerics.arrays import frozen
from shapedp.numerics.checks import nonnegative, vector
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Floats
from shapedp.privacy.losses.gaussian import GaussianLoss, renyi_order
from shapedp.privacy.losses.pairing import loss_of
from shapedp.privacy.losses.sums import SumLoss
from shapedp.sensitivity import Box, Sensitivity

_SMALL_SUM = 700.0
MU_ERROR = 2.0**-48  # relative error of mu as it is computed; delta increases with mu


@dataclass(frozen=True, eq=False)
class MixedLoss(SumLoss):
    """The loss of a corner of a box: Laplace coordinates of ratios l_i/b_i and a Gaussian part mu = |l/sigma|_2.

    Guarantee: the bracket holds the exact profile of the sum; the corner is the worst point of the box because the
    noise is log-concave (see `LaplaceLoss`).
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
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if self.mu > 30 or float(self.ratios.sum()) > _SMALL_SUM:
            return np.zeros_like(epsilon), np.ones_like(epsilon)
        lower, _ = self.sum_profile(epsilon, replace(self.total, deviation=self.mu * (1 - MU_ERROR)))
        _, upper = self.sum_profile(epsilon, replace(self.total, deviation=self.mu * (1 + MU_ERROR)))
        return np.minimum(lower, upper), upper

    def renyi(self, alpha: float) -> Bracket:
        """log M(alpha - 1)/(alpha - 1) of the sum."""
        order = renyi_order(alpha)
        value = self.total.cumulants(order - 1)[0] / (order - 1)
        slip = self.total.log_mgf_error(order - 1) / (order - 1) + order * self._slack + 4 * MU_ERROR * value
        return Bracket(max(value - slip, 0.0), value + slip)

    def _top(self) -> float:
        """Pure epsilon of the Laplace part, and of the Gaussian part where its delta is below 1e-300."""
        return float(self.ratios.sum()) + self.mu * (self.mu / 2 + 40)


@singledispatch
def _of(sensitivity: Sensitivity, law: Mixed) -> MixedLoss | GaussianLoss:
    raise TypeError(f"mixed noise is known for boxes only, not for the set {sensitivity.kind!r}")


@_of.register(Box)
def _box(sensitivity: Box, law: Mixed) -> MixedLoss | GaussianLoss:
    moving = sensitivity.profile > 0
    if (law.values[moving] == 0).any():
        return GaussianLoss(math.inf)
    normal, other = moving & law.gaussian, moving & ~law.gaussian
    z = sensitivity.profile[normal] / law.values[normal]
    ratios = sensitivity.profile[other] / law.values[other]
    return MixedLoss(ratios if ratios.size else np.zeros(1), math.sqrt(math.fsum(z * z)))


@loss_of.register(Mixed)
def _mixed(law: Mixed, sensitivity: Sensitivity) -> MixedLoss | GaussianLoss:
    return _of(sensitivity, law)
