"""The multivariate (l2) Laplace mechanism."""

from __future__ import annotations

import math

from shapedp.mechanisms import Additive
from shapedp.noise import radial
from shapedp.numerics.checks import positive, probability
from shapedp.sensitivity import L2


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
