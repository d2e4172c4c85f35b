"""Published calibrations of Gaussian noise."""

from __future__ import annotations

import math

from shapedp.mechanisms import Additive, calibrate
from shapedp.noise import Gaussian
from shapedp.numerics.checks import positive, probability
from shapedp.sensitivity import L2


def classic_gaussian(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """sigma = sensitivity sqrt(2 log(1.25/delta))/epsilon.

    Guarantee: none; the proof needs epsilon <= 1, and the certificate refutes it where that breaks it.
    Reference: Dwork and Roth 2014, Theorem A.1.
    """
    radius, epsilon, delta = (
        positive("sensitivity", sensitivity),
        positive("epsilon", epsilon),
        probability("delta", delta),
    )
    if delta == 0:
        raise ValueError("delta must be > 0: the classic Gaussian mechanism has no scale for delta = 0")
    sigma = radius * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return Additive(Gaussian(sigma, dim), L2(radius, dim), epsilon, delta, recipe="classic-gaussian")


def analytic_gaussian(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """The smallest sigma that meets (epsilon, delta), on the private side of the root.

    Reference: Balle and Wang 2018, Algorithm 1.
    """
    return calibrate("gaussian", L2(sensitivity, dim), epsilon=epsilon, delta=delta)
