"""The published calibration of Laplace noise."""

from __future__ import annotations

from shapedp.mechanisms import Additive
from shapedp.noise import Laplace
from shapedp.numerics.checks import positive, probability
from shapedp.sensitivity import L1


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
