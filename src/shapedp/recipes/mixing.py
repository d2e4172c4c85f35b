"""Gaussian mixing as published: Lemma 1, Theorem 1 with Algorithm 1, and Sheffet's bound.

Errata of Algorithm 1: the first branch adds gamma C where sqrt(gamma) C is meant (safe); the eigenvalue is in units
of C^2 but is subtracted from the unit-free gamma, which breaks privacy for C > 1; Theorem 1 prices the eigenvalue by
sqrt(2 log(3.75/delta))/eta, a bound proved only where that is at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy import special

from shapedp.mechanisms.certify import KINDS
from shapedp.mechanisms.mixing import (
    Mixing,
    Sketching,
    check_claim,
    check_sizes,
    draw_sketch,
    eigenvalue_slip,
    float_share,
    rounding,
)
from shapedp.numerics import first_true
from shapedp.numerics.checks import count, positive, probability
from shapedp.numerics.gram import least_eigenvalue
from shapedp.privacy import Loss
from shapedp.privacy.losses.base import Floats
from shapedp.privacy.losses.gaussian import GaussianLoss
from shapedp.privacy.losses.mixing import MixingLoss, Neighbours, label
from shapedp.sampling import Source, rounded_sum

HALF_STEP = 2.0**-17  # half a step of the grid that a released number is rounded to, in units of its noise
PRICE = "the eigenvalue is priced by the classic Gaussian formula, proved only for shares up to 1"
UNITS = "the eigenvalue, in units of C^2, is subtracted from the unit-free gamma: for C > 1 too little noise is added"


def sheffet_gamma(rows: int, epsilon: float, delta: float) -> float:
    """(2 sqrt(2 k log(4/delta)) + 2 log(4/delta))/epsilon. Reference: Sheffet 2019, Theorem 2."""
    k, log = count("rows", rows), math.log(4 / positive_delta(delta))
    return (2 * math.sqrt(2 * k * log) + 2 * log) / positive("epsilon", epsilon)


def mixing_rdp(alpha: float, rows: int, gamma: float) -> float:
    """phi(alpha; k, gamma). Reference: Lev et al. 2025, Lemma 1."""
    return rows / (2 * (alpha - 1)) * (alpha * math.log1p(-1 / gamma) - math.log1p(-alpha / gamma))


def rdp_epsilon(rows: int, gamma: float, delta: float) -> float:
    """The least over alpha of phi + log(1 - 1/alpha) - log(alpha delta)/(alpha - 1): Lemma 1 with Proposition 1."""
    from scipy import optimize

    def value(v: float) -> float:
        share = float(special.expit(v))
        alpha = 1 + (gamma - 1) * share
        if not 1 < alpha < gamma:
            return math.inf
        return mixing_rdp(alpha, rows, gamma) + math.log1p(-1 / alpha) - math.log(alpha * delta) / (alpha - 1)

    return float(optimize.minimize_scalar(value, bounds=(-25.0, 15.0), method="bounded", options={"xatol": 1e-9}).fun)


def rdp_gamma(rows: int, epsilon: float, delta: float) -> float:
    """The least gamma whose Renyi curve gives (epsilon, delta). Reference: Lev et al. 2025, Lemma 1, Proposition 1."""
    k, epsilon, delta = count("rows", rows), positive("epsilon", epsilon), positive_delta(delta)
    return first_true(lambda g: rdp_epsilon(k, g, delta) <= epsilon, 1 + 1e-9, 1e12, relative=1e-12)


def theorem_1_epsilon(eta: float, gamma: float, rows: int, delta: float) -> float:
    """epsilon~ of Theorem 1, eq. (2): the eigenvalue's share, and Lemma 1 at delta/3."""
    return eigenvalue_share(eta, delta) + rdp_epsilon(rows, gamma, delta / 3)


def eigenvalue_share(eta: float, delta: float) -> float:
    """sqrt(2 log(3.75/delta))/eta: what Theorem 1 charges for the eigenvalue, proved only up to 1."""
    return math.sqrt(2 * math.log(3.75 / delta)) / eta


def theorem_1_gamma(rows: int, epsilon: float, delta: float) -> float:
    """Line 1 of Algorithm 2: the least gamma > 5/2 with epsilon~ <= epsilon, eta = gamma/sqrt(k)."""
    k, epsilon, delta = count("rows", rows), positive("epsilon", epsilon), positive_delta(delta)
    root = math.sqrt(k)
    return first_true(lambda g: theorem_1_epsilon(g / root, g, k, delta) <= epsilon, 2.5 + 1e-9, 1e12, relative=1e-12)


def gauss_mix(*, rows: int, row_bound: float, epsilon: float, delta: float, analysis: str = "renyi") -> Mixing:
    """GaussMix with sigma^2 = gamma C^2, gamma by Lemma 1 (`analysis="renyi"`) or by Sheffet's bound ("sheffet").

    Guarantee: both proofs are right, so both are certified, with more noise than is needed.
    Reference: Lev et al. 2025, Lemma 1; Sheffet 2019, Theorem 2.
    """
    if analysis not in ("renyi", "sheffet"):
        raise ValueError(f"analysis must be 'renyi' or 'sheffet', got {analysis!r}")
    gamma = (rdp_gamma if analysis == "renyi" else sheffet_gamma)(rows, epsilon, delta)
    return Mixing(rows, row_bound, gamma + 1, epsilon, delta, recipe=f"gauss-mix-{analysis}")


def positive_delta(delta: float) -> float:
    """A delta in (0, 1)."""
    if probability("delta", delta) == 0:
        raise ValueError("delta must be > 0 for Gaussian mixing")
    return float(delta)


@dataclass(frozen=True)
class PublishedMixingLoss(Loss):
    """The loss of Algorithm 1 as printed, bracketed: by a proof from above, by witnesses from below.

    From above: but for P(z > tau), sigma^2 + lambda_min >= gamma min(C^2, 1), so the mixing loss is at most that of
    t = max(C^2, 1)/gamma, composed with the Gaussian of mu = 1/eta. With A of the other records the released l is at
    most lambda_min(A) + C^2, so that t bounds the shares of both records that are exchanged ("replace").

    Witnesses, which exchange a row for nothing and so are of both relations, for wide data whose other columns show the
    noise level: X^T X = l C^2 I against the same less one row.
    (i) With probability p(l) no noise is added, and then the mixing loss is that of t = 1/l: delta >= p(l) delta_1.
    (ii) The noise level tells the released eigenvalue unless it is cut off: delta >= the Gaussian delta of mu = 1/eta
    less the probability of the cuts. The eigenvalue is rounded to a grid, which half a step allows for. `slip` is how
    far the computed eigenvalue may be off, `wider` by how much rounding may raise t, `most` the largest l that the
    records allow.
    """

    rows: int
    row_bound: float
    gamma: float
    eta: float
    tau: float
    slip: float = 0.0
    wider: float = 1.0
    neighbours: Neighbours = "zero-out"
    most: float = math.inf

    symmetric = False

    def __post_init__(self) -> None:
        label(self, self.neighbours)

    @property
    def kept(self) -> float:
        """The least eigenvalue of the covariance, the record included, in units of C^2, unless z > tau."""
        if self.gamma <= self.tau:
            return 1 + self.gamma**2
        return self.gamma / max(self.row_bound, 1.0) ** 2

    @cached_property
    def _above(self) -> Loss | None:
        t = self.wider / self.kept * (1 + 2.0**-44)
        if not t < 1:
            return None
        if self.gamma <= self.tau:
            return MixingLoss(self.rows, t, self.neighbours)
        failure = float(special.ndtr(self.slip / self.eta + HALF_STEP - self.tau)) * (1 + 2.0**-40)
        mu = (1 + 2 * self.slip) * (1 + 2.0**-44) / self.eta
        return MixingLoss(self.rows, t, self.neighbours, mu).with_failure(failure)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        upper = np.ones_like(epsilon) if self._above is None else self._above.profile(epsilon, reverse=reverse)[1]
        if reverse or self.gamma <= self.tau:
            return np.zeros_like(epsilon), upper
        shown = [max(self.witness(e)[1], self.eigenvalue_witness(e)) for e in epsilon.ravel().tolist()]
        return np.minimum(np.array(shown).reshape(epsilon.shape), upper), upper

    def witness(self, epsilon: float) -> tuple[float, float]:
        """The l of witness (i) that shows most, and the delta it shows."""
        middle = self.gamma / self.row_bound**2 + self.eta * self.tau
        found = []
        for least in (middle + self.eta * step for step in np.linspace(-6.0, 4.0, 41).tolist()):
            if 1 < least <= self.most:
                shown = MixingLoss(self.rows, 1 / least).profile(np.array([epsilon]))[0][0]
                found.append((self.no_noise(least) * float(shown) * (1 - 1e-12), least))
        best = max(found, default=(0.0, math.inf))
        return best[1], best[0]

    def eigenvalue_witness(self, epsilon: float) -> float:
        """The delta that witness (ii) shows at least, with l in the middle of what is not cut off."""
        if not self.gamma / (2 * self.row_bound**2) + self.eta * self.tau <= self.most:
            return 0.0
        cut = 2 * float(special.ndtr(self.slip / self.eta - self.gamma / (2 * self.eta * self.row_bound**2)))
        mu = 1 / self.eta * (1 - 2.0**-50)
        rounded = 1 - HALF_STEP**2 * (1 + epsilon / mu + mu / 2) ** 3  # a threshold half a step off the best one
        return max(GaussianLoss(mu).delta(epsilon).lower * rounded - cut * (1 + 1e-12), 0.0)

    def no_noise(self, least: float) -> float:
        """The probability that no noise at all is added where lambda_min = least C^2."""
        short = (least - self.slip - self.gamma / self.row_bound**2) / self.eta
        return float(special.ndtr(short - HALF_STEP - self.tau))


def with_rounding(ideal: Any, gamma: float, rows: int, records: int | None, dim: int | None) -> Loss:
    """The loss of the floats released, for these sizes, where half of the covariance that hides a record is added last.

    `gamma` is the least eigenvalue of that covariance, the record included, in units of C^2.
    """
    if records is None or dim is None:
        return cast("Loss", ideal)
    ideal = replace(ideal, most=float(records // dim))  # X^T X = l C^2 I takes l rows of norm C per column
    if not gamma > 1:
        return cast("Loss", ideal)
    real = replace(ideal, slip=eigenvalue_slip(records, dim), wider=float_share(gamma, records, dim) * gamma)
    return cast("Loss", real.with_failure(0.0, total_variation=rounding(rows, gamma, records, dim)))


@dataclass(frozen=True)
class ModifiedGaussMix(Sketching):
    """Algorithm 1 exactly as printed, with the claim of Theorem 1 at its parameters."""

    kind = "modified-gauss-mix"
    rows: int
    row_bound: float
    gamma: float
    eta: float
    tau: float
    epsilon: float
    delta: float
    adjacency: Neighbours = "zero-out"
    records: int | None = None
    dim: int | None = None

    def __post_init__(self) -> None:
        check_claim(self)
        for name in ("gamma", "eta", "tau"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        check_sizes(self)

    @cached_property
    def ideal(self) -> PublishedMixingLoss:
        """Its privacy loss in real arithmetic."""
        return PublishedMixingLoss(self.rows, self.row_bound, self.gamma, self.eta, self.tau, neighbours=self.adjacency)

    @cached_property
    def loss(self) -> Loss:
        """Its privacy loss: in real arithmetic without the sizes, with them that of the floats released."""
        return with_rounding(self.ideal, self.ideal.kept, self.rows, self.records, self.dim)

    @property
    def reason(self) -> str:
        return UNITS if self.row_bound > 1 else PRICE

    @property
    def eigenvalue_share(self) -> float:
        """The epsilon that Theorem 1 charges for the eigenvalue."""
        return eigenvalue_share(self.eta, self.delta)

    def noise_variance(self, least: float, z: float) -> float:
        """The variance of the noise added, given lambda_min and z: lines 1 to 6."""
        return self._variance(least + self.eta * self.row_bound**2 * (z - self.tau))

    def _variance(self, released: float) -> float:
        """The same from l = lambda_min + eta C^2 (z - tau), which it shows."""
        square = self.row_bound**2
        if self.gamma <= self.tau:
            return self.gamma**2 * square
        return max(self.gamma - max(released, 0.0), 0.0) * square

    def _draw(self, moments: Floats, randomness: Source) -> tuple[Floats, float]:
        """The sketch as printed, for reproduction only. l is rounded as a whole: z alone on a grid shows the rest."""
        scale = self.eta * self.row_bound**2
        start = np.array([least_eigenvalue(moments) - scale * self.tau])
        variance = self._variance(float(rounded_sum(start, "gaussian", scale, None, randomness)[0]))
        last = max((self.ideal.kept - 1) / 2, 2.0**-40) * self.row_bound**2
        return draw_sketch(moments, self.rows, variance, last, randomness), variance


KINDS["modified-gauss-mix"] = ModifiedGaussMix  # its certificates can be recomputed


def modified_gauss_mix(*, rows: int, row_bound: float, epsilon: float, delta: float) -> ModifiedGaussMix:
    """Algorithm 1 as Algorithm 2 calls it: gamma by Theorem 1, eta = gamma/sqrt(k), tau = sqrt(2 log(3/delta)).

    Guarantee: none. For C <= 1 it is certified wherever the exact composition meets the claim, for C well above 1 it
    is refuted by a witness; in between (about 1.5 to 2.3 at (1, 1e-6), k = 1000) it is undecided.
    Reference: Lev et al. 2025, Theorem 1, Algorithms 1 and 2; errata above.
    """
    gamma = theorem_1_gamma(rows, epsilon, delta)
    eta = gamma / math.sqrt(rows)
    return ModifiedGaussMix(rows, row_bound, gamma, eta, math.sqrt(2 * math.log(3 / delta)), epsilon, delta)


def theorem_1(*, rows: int, row_bound: float, gamma: float, eta: float, delta: float) -> ModifiedGaussMix:
    """Algorithm 1 at any gamma > 5/2 and eta > 0, with the epsilon~ that Theorem 1 claims for them.

    Guarantee: none; refuted where the eigenvalue's share is large, since its price is then too low.
    Reference: Lev et al. 2025, Theorem 1.
    """
    gamma, eta, delta = positive("gamma", gamma), positive("eta", eta), positive_delta(delta)
    if not gamma > 2.5:
        raise ValueError(f"gamma must be > 5/2, got {gamma!r}")
    epsilon = theorem_1_epsilon(eta, gamma, count("rows", rows), delta)
    return ModifiedGaussMix(rows, row_bound, gamma, eta, math.sqrt(2 * math.log(3 / delta)), epsilon, delta)
