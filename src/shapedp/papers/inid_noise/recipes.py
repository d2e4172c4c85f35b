"""Independent, non-identical noise for unequally sensitive coordinates: one paper's calibrations and its baselines.

Reference: Muthukrishnan and Kalyani, Differential Privacy with Higher Utility by Exploiting Coordinate-wise Disparity
(the "i.n.i.d. noise paper"). A profile l_i, of any shape, bounds each coordinate; its Delta_p is |l|_p (Remark 1).
Scales are larger than printed by a relative 2^-44, so that rounding falls on the private side.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian, L1Staircase, Laplace
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import finite, positive, probability, vector
from shapedp.numerics.outward import ABOVE_256, ABOVE_512, BELOW_32, BELOW_256
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L1, Box


def bisection_bracket(epsilon: float, delta: float) -> tuple[float, float]:
    """Where the root mu_0 lies: R(delta) and R(delta + e^epsilon Q(sqrt(2 epsilon))), R(a) = sqrt(q^2 + 2 epsilon) - q.

    Here q = Q^-1(a). Reference: Appendix B.
    """

    def root(a: float) -> float:
        q = -float(special.ndtri(a))
        return math.sqrt(q * q + 2 * epsilon) - q

    wide = delta + math.exp(epsilon) * float(special.ndtr(-math.sqrt(2 * epsilon)))
    return root(delta), root(min(wide, 1 - 1e-16))


def bisection_mu(epsilon: float, delta: float, *, tolerance: float = 1e-12) -> float:
    """mu_0 by bisection from that bracket, the lower end kept.

    Guarantee: mu_0-GDP meets (epsilon, delta), since the lower end is checked on the bracketed profile.
    Reference: Algorithm 1.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    if delta == 0:
        raise ValueError("delta must be > 0: no Gaussian meets pure differential privacy")
    low, high = bisection_bracket(epsilon, delta)
    low *= BELOW_256
    while high - low > positive("tolerance", tolerance):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if GaussianLoss(middle).delta(epsilon).upper > delta:
            high = middle
        else:
            low = middle
    return low


def _gaussian(scales: Floats, profile: ArrayLike, epsilon: float, delta: float, name: str) -> Additive:
    return Additive(Gaussian(scales * ABOVE_512), Box(profile), epsilon, delta, recipe=name)


def _laplace(scales: Floats, profile: ArrayLike, epsilon: float, delta: float, name: str) -> Additive:
    return Additive(Laplace(scales * ABOVE_512), Box(profile), epsilon, delta, recipe=name)


def _profile(profile: ArrayLike) -> Floats:
    """The entries of a vector, matrix or tensor of bounds."""
    return vector("profile", finite("profile", profile).reshape(-1), least=0.0, strict=True)


def iid_gaussian(*, profile: ArrayLike, epsilon: float, delta: float) -> Additive:
    """sigma = |l|_2/mu_0 for every coordinate. Reference: Lemma 1, Table I."""
    bounds = _profile(profile)
    sigma = math.sqrt(float(bounds @ bounds)) / bisection_mu(epsilon, delta)
    return _gaussian(np.full(bounds.size, sigma), profile, epsilon, delta, "iid-gaussian")


def spr_gaussian(*, profile: ArrayLike, epsilon: float, delta: float) -> Additive:
    """sigma_i = sqrt(K) l_i/mu_0: scale, perturb, rescale. Reference: Definition 5, Table I."""
    bounds = _profile(profile)
    scales = bounds * (math.sqrt(bounds.size) / bisection_mu(epsilon, delta))
    return _gaussian(scales, profile, epsilon, delta, "spr-gaussian")


def inid_gaussian(*, profile: ArrayLike, epsilon: float, delta: float) -> Additive:
    """sigma_i^2 = l_i |l|_1/mu_0^2. Reference: Theorem 4."""
    bounds = _profile(profile)
    scales = np.sqrt(bounds * float(bounds.sum())) / bisection_mu(epsilon, delta)
    return _gaussian(scales, profile, epsilon, delta, "inid-gaussian")


def iid_laplace(*, profile: ArrayLike, epsilon: float, delta: float) -> Additive:
    """b = |l|_1/epsilon for every coordinate. Reference: Lemma 2, Table I."""
    bounds = _profile(profile)
    scales = np.full(bounds.size, float(bounds.sum()) / positive("epsilon", epsilon))
    return _laplace(scales, profile, epsilon, delta, "iid-laplace")


def spr_laplace(*, profile: ArrayLike, epsilon: float, delta: float) -> Additive:
    """b_i = K l_i/epsilon. Reference: Definition 5, Table I."""
    bounds = _profile(profile)
    return _laplace(bounds * (bounds.size / positive("epsilon", epsilon)), profile, epsilon, delta, "spr-laplace")


def inid_laplace(*, profile: ArrayLike, epsilon: float, delta: float) -> Additive:
    """b_i = l_i^(1/3) sum_j l_j^(2/3)/epsilon. Reference: Theorem 5."""
    bounds = _profile(profile)
    scales = np.cbrt(bounds) * float(np.cbrt(bounds**2).sum()) / positive("epsilon", epsilon)
    return _laplace(scales, profile, epsilon, delta, "inid-laplace")


def inid_laplace_approximate(*, profile: ArrayLike, epsilon: float, delta: float) -> Additive:
    """Theorem 5 at epsilon - log(1 - delta). Valid, but next to nothing is gained: see `calibrate("laplace", ...)`.

    Reference: Corollary 6 (whose proof should read |l/b|_1 > epsilon in its second case).
    """
    bounds = _profile(profile)
    relaxed = positive("epsilon", epsilon) - math.log1p(-probability("delta", delta))
    scales = np.cbrt(bounds) * float(np.cbrt(bounds**2).sum()) / relaxed
    return _laplace(scales, profile, epsilon, delta, "inid-laplace-approximate")


def staircase(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """Noise constant on l1 shells, least E |n|_1 for an L1 sensitivity in dimensions 1 and 2; simulation only.

    Reference: Geng, Kairouz, Oh and Viswanath 2015, Theorem 1 (optimal for dim <= 2, conjectured beyond).
    """
    law = L1Staircase(sensitivity * ABOVE_256, epsilon * BELOW_32, dim)
    return Additive(law, L1(sensitivity, dim), epsilon, delta, recipe="staircase")


def disparity(profile: ArrayLike) -> float:
    """nu = |l|_1/(K max l): shaping the noise reduces the squared error by a factor of order nu^2.

    Reference: Theorem 7.
    """
    bounds = _profile(profile)
    return float(bounds.sum() / (bounds.size * bounds.max()))


def gini(profile: ArrayLike) -> float:
    """sum_ij |l_i - l_j|/(2 K |l|_1), from the sorted profile. Reference: section V."""
    bounds = np.sort(_profile(profile))
    k = bounds.size
    rank = 2 * np.arange(1, k + 1) - k - 1
    return float(rank @ bounds) / (k * float(bounds.sum()))


def majorizes(above: ArrayLike, below: ArrayLike, *, tolerance: float = 1e-12) -> bool:
    """Whether the partial sums of the largest entries of `above` are at least those of `below`, the totals equal.

    Reference: Definition 6; Theorems 9 and 10 rank the error of profiles by it.
    """
    a, b = (np.cumsum(np.sort(vector("profile", one))[::-1]) for one in (above, below))
    if a.size != b.size:
        raise ValueError(f"profiles must have the same length, got {a.size} and {b.size}")
    slack = tolerance * max(abs(float(a[-1])), abs(float(b[-1])))
    return bool((a >= b - slack).all() and abs(float(a[-1] - b[-1])) <= slack)
