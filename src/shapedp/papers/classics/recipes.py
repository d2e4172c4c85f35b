"""Calibrations of Gaussian and Laplace noise as their authors published them."""

from __future__ import annotations

import math

from shapedp.mechanisms import Additive, calibrate
from shapedp.noise import Gaussian, Laplace, radial
from shapedp.numerics.checks import positive, probability
from shapedp.sensitivity import L1, L2


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


def laplace(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """b = sensitivity/epsilon for a query of L1 sensitivity `sensitivity`.

    The scale is a little larger than printed (a relative 2^-44), so that rounding falls on the private side.
    Reference: Dwork, McSherry, Nissim and Smith 2006, Proposition 1.
    """
    radius, epsilon, delta = (
        positive("sensitivity", sensitivity),
        positive("epsilon", epsilon),
        probability("delta", delta),
    )
    law = Laplace(radius / epsilon * (1 + 2.0**-44), dim)
    return Additive(law, L1(radius, dim), epsilon, delta, recipe="laplace")


def multivariate_laplace(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """Density ~ exp(-epsilon |x|_2/sensitivity): |n| ~ Gamma(dim), pure differential privacy as a law.

    Its scale is larger than printed by two slips over epsilon (1e-5 to 1e-3), what rounding in floats may cost; a
    claim of delta = 0 about a float release cannot be certified, so delta > 0 is asked for (1e-12, say).
    Reference: Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 1.
    """
    radius, epsilon = positive("sensitivity", sensitivity), positive("epsilon", epsilon)
    if probability("delta", delta) == 0:
        raise ValueError("delta must be > 0 for a float release of the multivariate Laplace law: 1e-12, say")
    law = radial.laplace(radius / epsilon, dim)
    least = 1.01 * (1 + math.exp(min(epsilon, 700.0))) * law.slip[1]
    if least > delta:
        raise ValueError(f"delta must be at least {least:.3g} in dimension {dim} at epsilon {epsilon:g}, got {delta!r}")
    for _ in range(3):
        law = radial.laplace(radius / (epsilon - 2.01 * law.slip[0]) * (1 + 2.0**-40), dim)
    return Additive(law, L2(radius, dim), epsilon, delta, recipe="multivariate-laplace")
