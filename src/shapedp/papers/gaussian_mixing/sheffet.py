"""Sheffet's threshold algorithm for a sketch, as printed and mended: no noise where the least eigenvalue is large.

Errata of the listings: they add gamma xi where sqrt(gamma) xi is meant; the listing with the Renyi analysis compares
lambda_min with the unit-free gamma (for C > 1 too low a threshold) and spends delta + delta/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from shapedp.boundary.values import boolean
from shapedp.mechanisms.mixing import Sketching, draw_sketch
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import one_of, positive
from shapedp.numerics.gram import least_eigenvalue
from shapedp.numerics.outward import ROUNDINGS_8192
from shapedp.papers.gaussian_mixing.losses import ThresholdLoss, with_rounding
from shapedp.papers.gaussian_mixing.recipes import positive_delta, rdp_gamma
from shapedp.privacy import Loss
from shapedp.privacy.losses.mixing import Neighbours
from shapedp.sampling import Source, rounded_sum

ANALYSES = ("sheffet", "renyi")
REASON = "lambda_min is compared with the unit-free gamma: for C > 1 the threshold is too low"


@dataclass(frozen=True)
class ThresholdMixing(Sketching):
    """A sketch without noise where lambda_min is seen to be large, with noise of `variance` C^2 otherwise.

    `threshold`, `slack`, `scale` and `variance` are in units of C^2, whatever the listing meant.
    """

    kind: ClassVar[str] = "threshold-mixing"
    rows: int
    row_bound: float
    threshold: float
    slack: float
    scale: float
    variance: float
    epsilon: float
    delta: float
    adjacency: Neighbours = "zero-out"
    records: int | None = None
    dim: int | None = None
    recipe: str | None = None
    reason: ClassVar[str] = REASON

    @cached_property
    def loss(self) -> Loss:
        """Its privacy loss: in real arithmetic without the sizes, with them that of the floats released."""
        own = ThresholdLoss(self.rows, self.threshold, self.slack, self.scale, self.variance, neighbours=self.adjacency)
        return with_rounding(own, own.gamma, self.records, self.dim)

    @property
    def _last(self) -> float:
        """The part of the covariance that is added last, exactly: half of what a record can count on."""
        return max((min(1 + self.variance, self.threshold) - 1) / 2, ROUNDINGS_8192) * self.row_bound**2

    def _draw(self, moments: Floats, randomness: Source) -> tuple[Floats, float]:
        """The sketch: for reproduction and as a baseline."""
        square = self.row_bound**2
        start = np.array([least_eigenvalue(moments) / square - self.threshold - self.slack])
        rich = float(rounded_sum(start, "laplace", self.scale, None, randomness)[0]) > 0
        variance = 0.0 if rich else self.variance * square
        return draw_sketch(moments, self.rows, variance, self._last, randomness), variance


def sheffet(
    *, rows: int, row_bound: float, epsilon: float, delta: float, analysis: str = "sheffet", printed: bool = False
) -> ThresholdMixing:
    """Sheffet's algorithm with his bound (`analysis="sheffet"`) or with the Renyi curve of mixing ("renyi").

    Mended by default: noise sqrt(gamma) C, thresholds in units of C^2, half of delta for each part; `printed=True`
    gives the listings of the paper (Algorithms 4 and 5) as they stand.
    Guarantee: the mended ones are certified; of the printed ones Algorithm 5 is refuted for C well above 1.
    Reference: Sheffet 2017, Algorithm 1; Lev et al. 2025, Algorithms 4 and 5.
    """
    printed = boolean("printed", printed)
    one_of("analysis", analysis, ANALYSES)
    epsilon, bound, delta = positive("epsilon", epsilon), positive("row_bound", row_bound), positive_delta(delta)
    slack, scale, square = 4 * math.log(1 / delta) / epsilon, 4 / epsilon, bound**2
    if analysis == "sheffet":
        log = math.log(8 / delta)
        gamma = threshold = 4 / epsilon * (math.sqrt(2 * rows * log) + 2 * log)
        variance = gamma**2 * square if printed else gamma  # printed: gamma, with its C^2, times xi
    else:
        gamma = rdp_gamma(rows, epsilon / 2, delta if printed else delta / 2)
        threshold, variance = (gamma / square, gamma**2 / square) if printed else (gamma, gamma)
    name = f"sheffet{'-renyi' * (analysis == 'renyi')}{'-printed' * printed}"
    return ThresholdMixing(rows, bound, threshold, slack, scale, variance, epsilon, delta, recipe=name)
