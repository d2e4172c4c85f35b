"""Renyi divergence of the Poisson-subsampled Gaussian."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from shapedp.numerics.checks import positive
from shapedp.privacy import Bracket
from shapedp.privacy.losses.gaussian import renyi_order

_INTEGER_LIMIT = 4096


def _log_moment_integer(mu: float, rate: float, alpha: int) -> float:
    """log E_Q[((1 - q) + q r)^alpha] = log sum_j C(alpha, j) (1 - q)^(alpha - j) q^j e^(mu^2 j (j - 1)/2)."""
    j = np.arange(alpha + 1, dtype=np.float64)
    binomial = special.gammaln(alpha + 1) - special.gammaln(j + 1) - special.gammaln(alpha - j + 1)
    terms = binomial + (alpha - j) * math.log1p(-rate) + j * math.log(rate) + mu * mu * j * (j - 1) / 2
    return float(special.logsumexp(terms))


def subsampled_gaussian_renyi(mu: float, rate: float, alpha: float) -> Bracket:
    """R(alpha) of (1 - q) N(0, 1) + q N(mu, 1) against N(0, 1), the larger of the two directions.

    The log-moment log E_Q[(dP/dQ)^alpha] is convex in alpha and exact at whole numbers: between two of them the chord
    is an upper bound, and the curve through the lower one (R increases with alpha) a lower bound.
    Guarantee: lower <= R(alpha) <= upper, alpha > 1.
    Reference: Mironov, Talwar and Zhang 2019, Theorem 4, Corollary 7 and section 3.3.
    """
    alpha, mu = renyi_order(alpha), positive("mu", mu)
    below, above = math.floor(alpha), math.ceil(alpha)
    if above > _INTEGER_LIMIT:
        raise ValueError(f"alpha must be at most {_INTEGER_LIMIT} for a subsampled Gaussian, got {alpha!r}")

    def moment(order: int) -> float:
        return 0.0 if order <= 1 else _log_moment_integer(mu, rate, order)

    slack = 2.0**-44 * (1 + alpha * (abs(math.log(rate)) + alpha * mu * mu + math.log(alpha + 1)))
    low, high = moment(below), moment(above)
    weight = alpha - below
    chord = low if above == below else (1 - weight) * low + weight * high
    upper = (chord + slack) / (alpha - 1)
    lower = (low - slack) / (below - 1) if below >= 2 else 0.0
    return Bracket(max(min(lower, upper), 0.0), upper)
