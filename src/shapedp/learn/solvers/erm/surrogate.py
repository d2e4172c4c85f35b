"""The quadratic that is closest to the logistic log-likelihood on an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import optimize

from shapedp.numerics.checks import positive


@dataclass(frozen=True)
class Surrogate:
    """b0 + b1 s + b2 s^2, within `error` of -log(1 + e^-s) for |s| <= reach, and of no quadratic closer.

    Minimising it over records is least squares on targets `scale` y: scale = -b1/(2 b2).
    """

    reach: float
    b0: float
    b1: float
    b2: float
    error: float

    @property
    def scale(self) -> float:
        """What weights fitted to y = +1, -1 are multiplied by."""
        return -self.b1 / (2 * self.b2)


def quadratic_surrogate(reach: float) -> Surrogate:
    """The minimax quadratic on [-reach, reach].

    -log(1 + e^-s) = s/2 - log(2 cosh(s/2)): the even part g(u) = log(2 cosh(sqrt(u)/2)) is concave in u = s^2, so the
    closest line in u is parallel to its chord, halfway between chord and tangent: the error alternates at
    s = -reach, -m, 0, m, reach, five points for three coefficients (Chebyshev).
    Reference: Lev et al. 2025, section 5.2 and equation (10).
    """
    if not 1e-3 <= positive("surrogate_reach", reach) <= 1e3:
        raise ValueError(f"surrogate_reach must lie between 1e-3 and 1e3, got {reach!r}")
    chord = (_even(reach) - math.log(2)) / reach**2
    touch = float(optimize.brentq(lambda m: math.tanh(m / 2) / (4 * m) - chord, reach * 1e-6, reach, xtol=1e-14))
    error = (_even(touch) - chord * touch**2 - math.log(2)) / 2
    return Surrogate(reach, -(math.log(2) + error), 0.5, -chord, error)


def _even(s: float) -> float:
    """log(2 cosh(s/2))."""
    return abs(s) / 2 + math.log1p(math.exp(-abs(s)))
