"""Privacy losses of the published sketches, bracketed: by a proof from above, by pairs of data sets from below."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import special

from shapedp.mechanisms.mixing import eigenvalue_slip, float_share, rounding
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import real
from shapedp.numerics.outward import ABOVE_512, ABOVE_8192, BELOW_8
from shapedp.privacy import Loss
from shapedp.privacy.losses.gaussian import GaussianLoss
from shapedp.privacy.losses.mixing import MixingLoss, Neighbours, label

RANGE = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])  # epsilons by which data that show much are chosen
HALF_STEP = 2.0**-17  # half a step of the grid that a released number is rounded to, in units of its noise


@dataclass(frozen=True)
class EigenvalueLoss(Loss):
    """The loss of a sketch with less noise, or none, where the least eigenvalue of X^T X is large.

    Eigenvalues are in units of C^2, C the bound on a row. The released eigenvalue is rounded to a grid, which half a
    step allows for.

    Parameters
    ----------
    rows: the rows of the sketch.
    slip: how far the computed eigenvalue may be off.
    wider: the factor by which rounding may raise the share t of a record in the covariance.
    neighbours: the neighbour relation.
    most: the largest eigenvalue that the records allow.
    """

    rows: int
    slip: float = field(default=0.0, kw_only=True)
    wider: float = field(default=1.0, kw_only=True)
    neighbours: Neighbours = field(default="zero-out", kw_only=True)
    most: float = field(default=math.inf, kw_only=True)

    symmetric = False

    def __post_init__(self) -> None:
        label(self, self.neighbours)

    @abstractmethod
    def no_noise(self, least: float) -> float:
        """The probability, at least, that no noise at all is added where lambda_min = least C^2."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """The scale of what is added to the eigenvalue, in units of C^2."""

    @property
    @abstractmethod
    def eigenvalues(self) -> list[float]:
        """Those that are tried for a lower end, in units of C^2."""

    def witness(self, epsilon: float) -> tuple[float, float]:
        """The eigenvalue whose data show most at an epsilon, and the delta that they show."""
        at = np.array([real("epsilon", epsilon)])
        found = [(float(self.shown(least, at)[0]), least) for least in self.eigenvalues if 1 < least <= self.most]
        best = max(found, default=(0.0, math.inf))
        return best[1], best[0]

    def most_shown(self) -> tuple[float, float]:
        """The most that data of one eigenvalue show over a range of epsilons, added up, and the eigenvalue."""
        found = [(math.fsum(self.shown(least, RANGE)), least) for least in self.eigenvalues if 1 < least <= self.most]
        return max(found, default=(0.0, math.inf))

    def shown(self, least: float, epsilon: Floats) -> Floats:
        """A lower bound on delta, from wide data with X^T X = least C^2 I against the same less one row.

        Where no noise is added the loss is that of mixing with the share 1/least, after that of having added none,
        which the row less makes rarer. A row is exchanged for nothing, so that the pair belongs to both relations.
        """
        if not 1 < least <= self.most or not self.no_noise(least) > 0:
            return np.zeros_like(epsilon)
        rarer = max(self.no_noise(least - 1 + 2 * self.slip + 2 * HALF_STEP * self.spread), 1e-300)
        told = max(math.log(self.no_noise(least) / rarer) - 1e-9, 0.0)
        left = epsilon - np.minimum(told, np.maximum(epsilon, 0.0))
        return self.no_noise(least) * MixingLoss(self.rows, 1 / least).profile(left)[0] * (1 - 1e-12)


@dataclass(frozen=True)
class PublishedMixingLoss(EigenvalueLoss):
    """The loss of Algorithm 1 as printed.

    From above: unless z > tau, sigma^2 + lambda_min >= gamma min(C^2, 1). The mixing loss is then at most that of
    t = max(C^2, 1)/gamma, composed with the Gaussian of mu = 1/eta. The released eigenvalue is at most C^2 above that
    of the other records, so that t bounds the shares of both records that are exchanged ("replace").

    From below, one of two, of a single release the better at each epsilon: (i) `shown` at one eigenvalue, where no
    noise is added; (ii) the noise level tells the released eigenvalue unless it is cut off, so delta is at least that
    of the Gaussian of mu = 1/eta less the probability of the cuts.
    """

    row_bound: float
    gamma: float
    eta: float
    tau: float

    @property
    def kept(self) -> float:
        """The least eigenvalue of the covariance, the record included, in units of C^2, unless z > tau."""
        if self.gamma <= self.tau:
            return 1 + self.gamma**2
        return self.gamma / max(self.row_bound, 1.0) ** 2

    @cached_property
    def _above(self) -> Loss | None:
        t = self.wider / self.kept * ABOVE_512
        if not t < 1:
            return None
        if self.gamma <= self.tau:
            return MixingLoss(self.rows, t, self.neighbours)
        failure = float(special.ndtr(self.slip / self.eta + HALF_STEP - self.tau)) * ABOVE_8192
        mu = (1 + 2 * self.slip) * ABOVE_512 / self.eta
        return MixingLoss(self.rows, t, self.neighbours, mu).with_failure(failure)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        upper = np.ones_like(epsilon) if self._above is None else self._above.profile(epsilon, reverse=reverse)[1]
        if reverse or self.gamma <= self.tau:
            return np.zeros_like(epsilon), upper
        if self.best_eigenvalue is not None:
            lower = self.shown(self.best_eigenvalue, epsilon.ravel())
        else:
            lower = np.array([self.eigenvalue_witness(e) for e in epsilon.ravel().tolist()])
        return np.minimum(lower.reshape(epsilon.shape), upper), upper

    def best_shown(self, epsilon: float) -> float:
        if self.gamma <= self.tau:
            return 0.0
        return max(self.witness(epsilon)[1], self.eigenvalue_witness(epsilon))

    @cached_property
    def best_eigenvalue(self) -> float | None:
        """The eigenvalue whose data show most by (i), over a range of epsilons; None where (ii) shows more."""
        found, least = self.most_shown()
        return least if found >= math.fsum(map(self.eigenvalue_witness, RANGE.tolist())) else None

    @property
    def eigenvalues(self) -> list[float]:
        middle = self.gamma / self.row_bound**2 + self.eta * self.tau
        return [middle + self.eta * step for step in np.linspace(-6.0, 4.0, 41).tolist()]

    def eigenvalue_witness(self, epsilon: float) -> float:
        """The delta that (ii) shows, with the eigenvalue in the middle of what is not cut off."""
        if not self.gamma / (2 * self.row_bound**2) + self.eta * self.tau <= self.most:
            return 0.0
        cut = 2 * float(special.ndtr(self.slip / self.eta - self.gamma / (2 * self.eta * self.row_bound**2)))
        mu = 1 / self.eta * BELOW_8
        rounded = 1 - HALF_STEP**2 * (1 + epsilon / mu + mu / 2) ** 3  # a threshold half a step off the best one
        return max(GaussianLoss(mu).delta(epsilon).lower * rounded - cut * (1 + 1e-12), 0.0)

    @property
    def spread(self) -> float:
        return self.eta

    def no_noise(self, least: float) -> float:
        short = (least - self.slip - self.gamma / self.row_bound**2) / self.eta
        return float(special.ndtr(short - HALF_STEP - self.tau))


@dataclass(frozen=True)
class ThresholdLoss(EigenvalueLoss):
    """The loss of a sketch without noise where lambda_min > least + z + slack, z ~ Lap(scale), with noise elsewhere.

    The noise has the given variance. All four numbers are in units of C^2.

    Guarantee: delta(epsilon) <= delta_mixing(epsilon - 1/scale; t) + P(z < -slack), as the comparison is (1/scale)-DP.
    Here t is the larger share of a record in the two cases. lambda_min of the other records is above least - 1, so
    that t bounds the shares of both records that are exchanged ("replace"). The lower end is `shown` at
    one of a grid of eigenvalues, of a single release at the best for each epsilon.
    """

    least: float
    slack: float
    scale: float
    variance: float

    @property
    def gamma(self) -> float:
        """The least eigenvalue of the covariance, the record included, with noise or without."""
        return min(1 + self.variance, self.least)

    @property
    def t(self) -> float:
        """The largest share of a record in the covariance."""
        return min(1 / self.gamma, 1.0) * ABOVE_512 * self.wider

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        upper = np.ones_like(epsilon)
        if self.t < 1:
            failure = 0.5 * math.exp(-max(self.slack - self.slip, 0.0) / self.scale) * ABOVE_8192
            comparison = ABOVE_512 * (1 + 2 * self.slip) / self.scale
            worse = MixingLoss(self.rows, self.t, self.neighbours).shift(comparison).with_failure(min(failure, 0.5))
            upper = worse.profile(epsilon, reverse=reverse)[1]
        if reverse:
            return np.zeros_like(epsilon), upper
        lower = self.shown(self._best_eigenvalue, epsilon.ravel())
        return np.minimum(lower.reshape(epsilon.shape), upper), upper

    def best_shown(self, epsilon: float) -> float:
        return self.witness(epsilon)[1]

    @cached_property
    def _best_eigenvalue(self) -> float:
        return self.most_shown()[1]

    @property
    def eigenvalues(self) -> list[float]:
        found: list[float] = (self.least + self.slack + self.scale * np.linspace(-12.0, 4.0, 33)).tolist()
        return found

    @property
    def spread(self) -> float:
        return self.scale

    def no_noise(self, least: float) -> float:
        gap = (least - self.slip - self.least - self.slack) / self.scale - HALF_STEP
        return 1 - 0.5 * math.exp(-gap) if gap > 0 else 0.5 * math.exp(gap)


def with_rounding(ideal: EigenvalueLoss, gamma: float, records: int | None, dim: int | None) -> Loss:
    """The loss of the floats released, for these sizes, where half of the covariance that hides a record is added last.

    `gamma` is the least eigenvalue of that covariance, the record included, in units of C^2.
    """
    if records is None or dim is None:
        return ideal
    ideal = replace(ideal, most=float(records // dim))  # X^T X = l C^2 I takes l rows of norm C per column
    if not gamma > 1:
        return ideal
    real = replace(ideal, slip=eigenvalue_slip(records, dim), wider=float_share(gamma, records, dim) * gamma)
    return real.with_failure(0.0, total_variation=rounding(ideal.rows, gamma, records, dim))
