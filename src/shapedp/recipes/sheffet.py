"""Sheffet's threshold algorithm for a sketch, as printed and mended: no noise where the least eigenvalue is large.

Errata of the listings: they add gamma xi where sqrt(gamma) xi is meant; the listing with the Renyi analysis compares
lambda_min with the unit-free gamma (for C > 1 too low a threshold) and spends delta + delta/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.boundary.values import boolean
from shapedp.mechanisms.certify import KINDS
from shapedp.mechanisms.mixing import UP, Sketching, check_claim, check_sizes, draw_sketch
from shapedp.numerics.checks import one_of, positive
from shapedp.numerics.gram import least_eigenvalue
from shapedp.privacy import Loss
from shapedp.privacy.losses.base import Floats
from shapedp.privacy.losses.mixing import MixingLoss, Neighbours, label
from shapedp.recipes.mixing import HALF_STEP, positive_delta, rdp_gamma, with_rounding
from shapedp.sampling import Source, rounded_sum

ANALYSES = ("sheffet", "renyi")
REASON = "lambda_min is compared with the unit-free gamma: for C > 1 the threshold is too low"


@dataclass(frozen=True)
class ThresholdLoss(Loss):
    """The loss of: no noise if lambda_min > least + z + slack, z ~ Lap(scale); else noise of that variance (units C^2).

    Guarantee: delta(e) <= delta_mixing(e - 1/scale; t) + P(z < -slack), t the larger of the two branches: the
    comparison is (1/scale)-DP. lambda_min of the other records is above least - 1, so that t bounds the shares of both
    records that are exchanged ("replace"). From below, with X^T X = l I and wide data, delta >= P(no noise at l)
    delta_1(1/l): a row exchanged for nothing, which is of both relations.
    `slip` is how far the computed eigenvalue may be off, `wider` by how much rounding may raise t, `most` the largest l
    that the records allow.
    """

    rows: int
    least: float
    slack: float
    scale: float
    variance: float
    slip: float = 0.0
    wider: float = 1.0
    neighbours: Neighbours = "zero-out"
    most: float = math.inf

    symmetric = False

    def __post_init__(self) -> None:
        label(self, self.neighbours)

    @property
    def gamma(self) -> float:
        """The least eigenvalue of the covariance, the record included, with noise or without."""
        return min(1 + self.variance, self.least)

    @property
    def t(self) -> float:
        """The largest share of a record in the covariance."""
        return min(1 / self.gamma, 1.0) * UP * self.wider

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        upper = np.ones_like(epsilon)
        if self.t < 1:
            failure = 0.5 * math.exp(-max(self.slack - self.slip, 0.0) / self.scale) * (1 + 2.0**-40)
            comparison = UP * (1 + 2 * self.slip) / self.scale
            worse = MixingLoss(self.rows, self.t, self.neighbours).shift(comparison).with_failure(min(failure, 0.5))
            upper = worse.profile(epsilon, reverse=reverse)[1]
        if reverse:
            return np.zeros_like(epsilon), upper
        lower = np.zeros(epsilon.size)
        for step in np.linspace(-12.0, 4.0, 33).tolist():
            at = self.least + self.slack + self.scale * step
            if 1 < at <= self.most:
                shown = MixingLoss(self.rows, 1 / at).profile(epsilon.ravel())[0]
                lower = np.maximum(lower, self.no_noise(at) * shown * (1 - 1e-12))
        return np.minimum(lower.reshape(epsilon.shape), upper), upper

    def no_noise(self, eigenvalue: float) -> float:
        """The probability that no noise is added at this least eigenvalue."""
        gap = (eigenvalue - self.slip - self.least - self.slack) / self.scale - HALF_STEP
        return 1 - 0.5 * math.exp(-gap) if gap > 0 else 0.5 * math.exp(gap)


@dataclass(frozen=True)
class ThresholdMixing(Sketching):
    """A sketch without noise where lambda_min is seen to be large, with noise of `variance` C^2 otherwise.

    `threshold`, `slack`, `scale` and `variance` are in units of C^2, whatever the listing meant.
    """

    kind = "threshold-mixing"
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

    def __post_init__(self) -> None:
        check_claim(self)
        for name in ("threshold", "slack", "scale", "variance"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        check_sizes(self)

    @cached_property
    def loss(self) -> Loss:
        """Its privacy loss: in real arithmetic without the sizes, with them that of the floats released."""
        ideal = ThresholdLoss(
            self.rows, self.threshold, self.slack, self.scale, self.variance, neighbours=self.adjacency
        )
        return with_rounding(ideal, ideal.gamma, self.rows, self.records, self.dim)

    @property
    def _last(self) -> float:
        """The part of the covariance that is added last, exactly: half of what a record can count on."""
        return max((min(1 + self.variance, self.threshold) - 1) / 2, 2.0**-40) * self.row_bound**2

    @property
    def reason(self) -> str:
        return REASON

    def _draw(self, moments: Floats, randomness: Source) -> tuple[Floats, float]:
        """The sketch: for reproduction and as a baseline."""
        square = self.row_bound**2
        start = np.array([least_eigenvalue(moments) / square - self.threshold - self.slack])
        rich = float(rounded_sum(start, "laplace", self.scale, None, randomness)[0]) > 0
        variance = 0.0 if rich else self.variance * square
        return draw_sketch(moments, self.rows, variance, self._last, randomness), variance


KINDS["threshold-mixing"] = ThresholdMixing  # its certificates can be recomputed


def sheffet(
    *,
    rows: int,
    row_bound: float,
    epsilon: float,
    delta: float,
    analysis: str = "sheffet",
    printed: bool = False,
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
        gamma = 4 / epsilon * (math.sqrt(2 * rows * log) + 2 * log)
        variance = gamma**2 * square if printed else gamma  # printed: gamma, with its C^2, times xi
        return ThresholdMixing(
            rows, bound, gamma, slack, scale, variance, epsilon, delta, recipe=f"sheffet{'-printed' * printed}"
        )
    gamma = rdp_gamma(rows, epsilon / 2, delta if printed else delta / 2)
    threshold, variance = (gamma / square, gamma**2 / square) if printed else (gamma, gamma)
    name = f"sheffet-renyi{'-printed' * printed}"
    return ThresholdMixing(rows, bound, threshold, slack, scale, variance, epsilon, delta, recipe=name)
