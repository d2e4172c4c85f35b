"""Renyi divergence of the Poisson-subsampled Gaussian, at every real order."""

from __future__ import annotations

import math

import numpy as np

from shapedp.numerics import normal_log_density
from shapedp.numerics.checks import positive
from shapedp.numerics.outward import ROUNDINGS_32
from shapedp.privacy import Bracket
from shapedp.privacy.losses.base import renyi_order

ORDER_LIMIT = 512.0


def subsampled_gaussian_renyi(mu: float, rate: float, alpha: float) -> Bracket:
    """R(alpha) of (1 - q) N(0, 1) + q N(mu, 1) against N(0, 1), the larger of the two directions.

    E[((1 - q) + q e^(mu x - mu^2/2))^alpha] by the trapezoidal rule: the integrand is analytic in |Im x| < pi/mu and at
    height a <= pi/(2 mu) at most e^(a^2/2) times itself: the rule's relative error is 2 e^(a^2/2)/(e^(2 pi a/h) - 1).
    Guarantee: lower <= R(alpha) <= upper, 1 < alpha <= 512.
    Reference: Mironov, Talwar and Zhang 2019, Theorem 4 and Corollary 7; Trefethen and Weideman 2014, Theorem 5.1.
    """
    alpha, mu = renyi_order(alpha), positive("mu", mu)
    if alpha > ORDER_LIMIT:
        raise ValueError(f"alpha must be at most {ORDER_LIMIT:g} for a subsampled Gaussian, got {alpha!r}")
    height = min(math.pi / (2 * mu), 1.0)
    step = 2 * math.pi * height / 45
    x = np.arange(-40.0, 40.0 + alpha * mu, step)
    exponent = normal_log_density(x) + alpha * np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - mu * mu / 2)
    peak = float(exponent.max())
    with np.errstate(under="ignore"):
        moment = peak + math.log(float(np.exp(exponent - peak).sum()) * step)
    # the rule, the cut ends, and rounding of exponents of this size
    slack = 1e-18 + ROUNDINGS_32 * (2 + abs(peak) + alpha * (abs(math.log(rate)) + 1) + x.size * 2.0**-5)
    return Bracket(max(moment - slack, 0.0) / (alpha - 1), max(moment + slack, 0.0) / (alpha - 1))
