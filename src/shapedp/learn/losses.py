"""Losses of linear models: convex functions of one score s = x.w and a target, with slopes within [-1, 1].

Those of classifiers are functions of the margin z = y s, with y = +1 or -1: each falls with it, with a slope in
[-1, 0], and has `value`, `slope` and `curvature` (the second derivative, from the right where it jumps). Those of
generalised linear models have slopes of both signs (`signed`). All answer `value_at`, `slope_at` and `curvature_at`
(score, target), derivatives by the score, with a bound `curvature_bound`, a guess `typical_curvature`, and
`slope_error`, a bound on the rounding of a slope.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import positive
from shapedp.numerics.outward import ABOVE_8, ROUNDINGS_8, ROUNDINGS_16, ROUNDINGS_512, WIDER


class Margin(ABC):
    """A loss of the margin."""

    signed: ClassVar[bool] = False
    reached: ClassVar[float] = 10.0  # scores of this size are to be expected

    @abstractmethod
    def value(self, margin: Floats) -> Floats:
        """The loss."""

    @abstractmethod
    def slope(self, margin: Floats) -> Floats:
        """Its derivative, in [-1, 0]."""

    @abstractmethod
    def curvature(self, margin: Floats) -> Floats:
        """Its second derivative."""

    @property
    @abstractmethod
    def curvature_bound(self) -> float:
        """The most `curvature` can be."""

    @property
    def typical_curvature(self) -> float:
        return 0.5 * self.curvature_bound

    def value_at(self, score: Floats, target: Floats) -> Floats:
        return self.value(target * score)

    def slope_at(self, score: Floats, target: Floats) -> Floats:
        return target * self.slope(target * score)

    def curvature_at(self, score: Floats, target: Floats) -> Floats:
        return self.curvature(target * score)


@dataclass(frozen=True)
class Logistic(Margin):
    """log(1 + e^-z)."""

    name: ClassVar[str] = "logistic"
    curvature_bound: ClassVar[float] = 0.25
    slope_error: ClassVar[float] = ROUNDINGS_16

    def value(self, margin: Floats) -> Floats:
        return np.logaddexp(0.0, -margin)

    def slope(self, margin: Floats) -> Floats:
        return -special.expit(-margin)

    def curvature(self, margin: Floats) -> Floats:
        half = special.expit(-margin)
        return np.asarray(half * (1 - half))


@dataclass(frozen=True)
class HuberHinge(Margin):
    """0 for z > 1 + h, (1-z)^2/(4h) + (1-z)/2 + h/4 for |1-z| <= h, 1 - z below: the hinge, rounded off.

    Reference: Chapelle 2007, section 2; Chaudhuri, Monteleoni and Sarwate 2011, equation (7). The cases printed by the
    product-noise paper (appendix E.1) are in another order and lack the h of 4h.
    """

    width: float = 0.1
    name: ClassVar[str] = "huber-hinge"

    def __post_init__(self) -> None:
        if not WIDER <= positive("width", self.width) <= 1:
            raise ValueError(f"width must lie between 2^-20 and 1, got {self.width!r}")

    @property
    def curvature_bound(self) -> float:
        return 0.5 / self.width * ABOVE_8

    @property
    def slope_error(self) -> float:
        """Three roundings of numbers below 2 where the slope bends, over 2h; elsewhere it is exact."""
        return ROUNDINGS_8 / self.width

    def value(self, margin: Floats) -> Floats:
        short = 1 - margin
        bend = np.clip(short + self.width, 0.0, 2 * self.width)
        return np.asarray(bend**2 / (4 * self.width) + np.maximum(short - self.width, 0.0))

    def slope(self, margin: Floats) -> Floats:
        return np.asarray(-np.clip((1 - margin + self.width) / (2 * self.width), 0.0, 1.0))

    def curvature(self, margin: Floats) -> Floats:
        return np.where(np.abs(1 - margin) <= self.width, 0.5 / self.width, 0.0)


BASE = 2.0  # a score of 0 stands for the mean e^-2, where targets lie in [0, 1]


@dataclass(frozen=True)
class Poisson:
    """The deviance of counts, over `clip`: slope (m(s) - y)/clip, clipped to [-1, 1], with m(s) = min(e^(s - 2), 1).

    Targets y lie in [0, 1], in units of the largest; so do means, therefore.
    """

    clip: float
    name: ClassVar[str] = "poisson"
    signed: ClassVar[bool] = True
    reached: ClassVar[float] = 3.0

    def __post_init__(self) -> None:
        if not WIDER <= positive("clip", self.clip) <= 1:
            raise ValueError(f"clip must lie between 2^-20 and 1 in units of target_bound, got {self.clip!r}")

    @property
    def curvature_bound(self) -> float:
        return 1.0 / self.clip * ABOVE_8

    @property
    def typical_curvature(self) -> float:
        return math.exp(-BASE) / self.clip

    @property
    def slope_error(self) -> float:
        """Some roundings of numbers up to 1, over the clip."""
        return ROUNDINGS_16 / self.clip

    def _bent(self, score: Floats, target: Floats) -> tuple[Floats, Floats]:
        """score - BASE within the ends between which the slope bends, and the mean there."""
        with np.errstate(divide="ignore"):
            low = np.log(np.maximum(target - self.clip, 0.0))
        inside = np.clip(score - BASE, low, np.log(np.minimum(target + self.clip, 1.0)))
        return inside, np.exp(inside)

    def value_at(self, score: Floats, target: Floats) -> Floats:
        inside, mean = self._bent(score, target)
        bend = (mean - target * inside) / self.clip
        return np.asarray(bend + (score - BASE - inside) * self.slope_at(score, target))

    def slope_at(self, score: Floats, target: Floats) -> Floats:
        return np.clip((self._bent(score, target)[1] - target) / self.clip, -1.0, 1.0)

    def curvature_at(self, score: Floats, target: Floats) -> Floats:
        inside, mean = self._bent(score, target)
        return np.where(inside == score - BASE, np.minimum(mean, 1.0) / self.clip, 0.0)


@dataclass(frozen=True)
class Gamma:
    """The deviance of positive amounts, over `clip` >= 1: slope (1 - y e^(2 - s))/clip, clipped from below at -1.

    Targets y > 0 in any unit near the largest one.
    """

    clip: float
    name: ClassVar[str] = "gamma"
    signed: ClassVar[bool] = True
    reached: ClassVar[float] = 3.0

    def __post_init__(self) -> None:
        if not 1 <= positive("clip", self.clip) <= 1 / WIDER:
            raise ValueError(f"clip must lie between 1 and 2^20, got {self.clip!r}")

    @property
    def curvature_bound(self) -> float:
        return (1 + 1 / self.clip) * ABOVE_8

    @property
    def typical_curvature(self) -> float:
        return 1.0 / self.clip

    @property
    def slope_error(self) -> float:
        """Some roundings of ratios up to 1 + clip, over the clip, and of a score as large as log y."""
        return ROUNDINGS_512 * (1 + 1 / self.clip)

    def _bent(self, score: Floats, target: Floats) -> tuple[Floats, Floats]:
        """score - BASE, but not below where the slope bends, and the ratio of the target to the mean there."""
        inside = np.maximum(score - BASE, np.log(target) - math.log1p(self.clip))
        return inside, np.minimum(target * np.exp(-inside), 1 + self.clip)

    def value_at(self, score: Floats, target: Floats) -> Floats:
        inside, ratio = self._bent(score, target)
        return np.asarray((inside + ratio) / self.clip + (score - BASE - inside) * self.slope_at(score, target))

    def slope_at(self, score: Floats, target: Floats) -> Floats:
        return np.clip((1 - self._bent(score, target)[1]) / self.clip, -1.0, 1.0)

    def curvature_at(self, score: Floats, target: Floats) -> Floats:
        inside, ratio = self._bent(score, target)
        return np.where(inside == score - BASE, ratio / self.clip, 0.0)


MarginLoss = Logistic | HuberHinge
LinearLoss = Logistic | HuberHinge | Poisson | Gamma
