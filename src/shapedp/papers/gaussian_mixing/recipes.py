"""Gaussian mixing as published: Lemma 1, Theorem 1 with Algorithm 1, and Sheffet's bound.

Misprints of Algorithm 1: the first branch adds gamma C where sqrt(gamma) C is meant (safe); the eigenvalue is in units
of C^2 but is subtracted from the unit-free gamma, which to the letter breaks privacy for C > 1. Erratum: Theorem 1
prices the eigenvalue by sqrt(2 log(3.75/delta))/eta, a bound proved only where that is at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import special

from shapedp.mechanisms.mixing import EigenvalueSketching, Mixing, draw_sketch
from shapedp.numerics import first_true
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, positive, probability
from shapedp.numerics.gram import least_eigenvalue
from shapedp.numerics.outward import ROUNDINGS_8192
from shapedp.papers.gaussian_mixing.losses import PublishedMixingLoss, with_rounding
from shapedp.privacy import Loss
from shapedp.sampling import Source, rounded_sum

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
class ModifiedGaussMix(EigenvalueSketching):
    """Algorithm 1 exactly as printed, with the claim of Theorem 1 at its parameters."""

    kind: ClassVar[str] = "modified-gauss-mix"

    @cached_property
    def ideal(self) -> PublishedMixingLoss:
        """Its privacy loss in real arithmetic."""
        return PublishedMixingLoss(self.rows, self.row_bound, self.gamma, self.eta, self.tau, neighbours=self.adjacency)

    @cached_property
    def loss(self) -> Loss:
        """Its privacy loss: in real arithmetic without the sizes, with them that of the floats released."""
        return with_rounding(self.ideal, self.ideal.kept, self.records, self.dim)

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
        last = max((self.ideal.kept - 1) / 2, ROUNDINGS_8192) * self.row_bound**2
        return draw_sketch(moments, self.rows, variance, last, randomness), variance


def modified_gauss_mix(*, rows: int, row_bound: float, epsilon: float, delta: float) -> ModifiedGaussMix:
    """Algorithm 1 as Algorithm 2 calls it: gamma by Theorem 1, eta = gamma/sqrt(k), tau = sqrt(2 log(3/delta)).

    Guarantee: none. For C <= 1 it is certified wherever the exact composition meets the claim, for C well above 1 it
    is refuted by a witness; in between (about 1.5 to 2 at (1, 1e-6), k = 1000) it is undecided.
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
