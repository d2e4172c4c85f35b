"""Calibrations of Gaussian and Laplace noise as their authors published them."""

from __future__ import annotations

import math

from shapedp.mechanisms import Additive, calibrate
from shapedp.noise import Gaussian, Laplace, radial
from shapedp.numerics.checks import positive, probability
from shapedp.numerics.outward import ABOVE_512, ABOVE_8192
from shapedp.sensitivity import L1, L2


def classic_gaussian(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """Gaussian noise of sigma = sensitivity sqrt(2 log(1.25/delta))/epsilon.

    Parameters
    ----------
    dim: the number of coordinates of the query.
    sensitivity: its L2 sensitivity.
    epsilon, delta: the claim; delta > 0.

    Returns
    -------
    The mechanism with its claim.

    Guarantee: none. The proof needs epsilon <= 1; the certificate refutes the claim where it fails beyond that.
    Reference: Dwork and Roth 2014, Theorem A.1.

    >>> classic_gaussian(dim=3, sensitivity=1.0, epsilon=10.0, delta=1e-5).certificate.verdict
    'refuted'
    """
    radius, epsilon = positive("sensitivity", sensitivity), positive("epsilon", epsilon)
    if probability("delta", delta) == 0:
        raise ValueError("delta must be > 0: the classic Gaussian mechanism has no scale for delta = 0")
    sigma = radius * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return Additive(Gaussian(sigma, dim), L2(radius, dim), epsilon, delta, recipe="classic-gaussian")


def analytic_gaussian(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """Gaussian noise of the smallest sigma that meets (epsilon, delta), on the private side of the root.

    Parameters
    ----------
    dim, sensitivity, epsilon, delta: as for `classic_gaussian`.

    Returns
    -------
    The mechanism with its claim; the claim is certified.

    Reference: Balle and Wang 2018, Algorithm 1.

    >>> analytic_gaussian(dim=3, sensitivity=1.0, epsilon=10.0, delta=1e-5).certificate.verdict
    'certified'
    """
    return calibrate("gaussian", L2(sensitivity, dim), epsilon=epsilon, delta=delta)


def laplace(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """Independent Laplace noise of scale sensitivity/epsilon on every coordinate.

    Parameters
    ----------
    dim: the number of coordinates of the query.
    sensitivity: its L1 sensitivity.
    epsilon, delta: the claim; delta may be 0.

    Returns
    -------
    The mechanism with its claim. Its scale is larger than printed by a relative 2^-44, so that rounding falls on the
    private side.

    Reference: Dwork, McSherry, Nissim and Smith 2006, Proposition 1.

    >>> laplace(dim=3, sensitivity=1.0, epsilon=1.0, delta=0.0).certificate.verdict
    'certified'
    """
    radius, epsilon = positive("sensitivity", sensitivity), positive("epsilon", epsilon)
    law = Laplace(radius / epsilon * ABOVE_512, dim)
    return Additive(law, L1(radius, dim), epsilon, probability("delta", delta), recipe="laplace")


def multivariate_laplace(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """Noise of density proportional to exp(-epsilon |x|_2/sensitivity); its norm has a Gamma(dim) law.

    Parameters
    ----------
    dim: the number of coordinates of the query.
    sensitivity: its L2 sensitivity.
    epsilon, delta: the claim. The law itself is pure, but a float release cannot be certified for delta = 0: ask for
        delta > 0, 1e-12 say.

    Returns
    -------
    The mechanism with its claim. Its scale is larger than printed by what rounding in floats may cost (1e-5 to 1e-3).

    Reference: Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 1.

    >>> multivariate_laplace(dim=3, sensitivity=1.0, epsilon=1.0, delta=1e-9).certificate.verdict
    'certified'
    """
    radius, epsilon = positive("sensitivity", sensitivity), positive("epsilon", epsilon)
    if probability("delta", delta) == 0:
        raise ValueError("delta must be > 0 for a float release of the multivariate Laplace law: 1e-12, say")
    law = radial.laplace(radius / epsilon, dim)
    least = 1.01 * (1 + math.exp(min(epsilon, 700.0))) * law.slip[1]
    if least > delta:
        raise ValueError(f"delta must be at least {least:.3g} in dimension {dim} at epsilon {epsilon:g}, got {delta!r}")
    for _ in range(3):
        law = radial.laplace(radius / (epsilon - 2.01 * law.slip[0]) * ABOVE_8192, dim)
    return Additive(law, L2(radius, dim), epsilon, delta, recipe="multivariate-laplace")
