"""Losses of linear classifiers: convex functions of the margin z = y x.w, with y = +1 or -1.

Each falls with the margin, with a slope in [-1, 0], and has `value`, `slope` and `curvature` (the second derivative,
from the right where it jumps), a bound `curvature_bound` on the latter and `slope_error` on the rounding of `slope`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import positive
from shapedp.numerics.outward import ABOVE_8, ROUNDINGS_8, ROUNDINGS_16, WIDER


@dataclass(frozen=True)
class Logistic:
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
class HuberHinge:
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


MarginLoss = Logistic | HuberHinge
