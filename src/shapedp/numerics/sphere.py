"""Caps of a sphere in any dimension: P(cos angle >= c) for a uniform direction, scaled so that nothing underflows."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
from scipy import special

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_512
from shapedp.numerics.quadrature import legendre

CAP_ERROR = ROUNDINGS_512
_SPLIT = 0.4  # c^2 where the expansion at the equator hands over to Gauss quadrature
_SERIES_FROM = 15  # dimension from which the expansion holds to 1e-16
_LAGUERRE_FROM = 60.0
_NODES = 14
_TERMS = 15
_BLOCK = 2048  # angles at a time: their points stay in the cache


@cache
def _equator_coefficients() -> tuple[float, ...]:
    """Taylor coefficients of (w/sinh w)^(1/2) in w^2, exact before rounding."""
    base = [Fraction(1, math.factorial(2 * j + 1)) for j in range(_TERMS)]
    power, out = Fraction(-1, 2), [Fraction(1)]
    for m in range(1, _TERMS):
        out.append(sum(((k * power - m + k) * base[k] * out[m - k] for k in range(1, m + 1)), Fraction(0)) / m)
    return tuple(map(float, out))


class Cap:
    """The cap {x >= c} of the unit sphere of R^dim, x the cosine of the angle to a pole.

    `density_at_equator` is the density of x at 0: Gamma(dim/2)/(sqrt(pi) Gamma((dim-1)/2)).
    `scaled(c)` is T(c) = P(x >= c)/(1 - c^2)^((dim-1)/2) for 0 <= c < 1: it falls from 1/2 and plays the part
    of Mills' ratio.

    Guarantee: relative error at most 2^-44, to either side, in every dimension: one cap is subtracted from another,
    so that a bound from one side would be of no use, however small the cap. Three routes:
    (i) dim >= 15, c^2 <= 0.4: with e^(-2 v) = 1 - c^2 and N = dim - 3/2,
    P is proportional to sum d_n N^(-2n) Gamma(2n + 1/2, N v), d_n the coefficients of (w/sinh w)^(1/2) in w^2;
    as a product of 1/sqrt(1 + w^2/(j pi)^2) that function is completely monotone in w^2, so the sum
    envelops the truth and the first term left out bounds the error; (ii) dim < 15, c^2 <= 0.4: 16 Gauss
    points of the density from 0 to c, analytic in an ellipse of parameter 4; (iii) c^2 > 0.4: Gauss-Jacobi or
    Gauss-Laguerre points of E[(1 - (1 - c^2) B)^(-1/2)], B ~ Beta((dim-1)/2, 1): all derivatives in B are positive,
    so that the sum is below the truth and Gauss-Radau's with a point at B = 1 above it; they meet to 2^-46 (tested).
    In 2 dimensions P is arccos(c)/pi, in 3 it is (1 - c)/2.
    Reference: DiDonato and Morris 1992, ACM TOMS 18, BGRAT; Widder 1941, The Laplace Transform, chapter IV.
    """

    def __init__(self, dim: int) -> None:
        self.dim, self._half = dim, (dim - 1) / 2
        self._points = _beta_points(self._half)
        if self.dim >= _SERIES_FROM:
            order = self.dim - 1.5
            sizes = [
                abs(d) * math.exp(math.lgamma(2 * n + 0.5) - math.lgamma(0.5) - 2 * n * math.log(order))
                + 4 * abs(d) * 0.26 ** (2 * n)
                for n, d in enumerate(_equator_coefficients())
            ]
            self._terms = next((n for n, size in enumerate(sizes) if size < 1e-17), _TERMS - 1)
            self._norm = math.fsum(
                d * math.exp(math.lgamma(2 * n + 0.5) - 2 * n * math.log(order))
                for n, d in enumerate(_equator_coefficients()[: self._terms])
            )
            self.density_at_equator = math.sqrt(order / 2) / self._norm
        else:
            self.density_at_equator = math.gamma(dim / 2) / (math.gamma(self._half) * math.sqrt(math.pi))

    def log_weight(self, c: Floats) -> Floats:
        """log (1 - c^2)^((dim-1)/2)."""
        return self._half * np.log1p(-c * c)

    def scaled(self, c: Floats) -> Floats:
        """T(c) for 0 <= c < 1."""
        c = np.asarray(c, dtype=np.float64)
        if self.dim == 2:
            return np.asarray(np.arccos(c) / (math.pi * np.sqrt((1 - c) * (1 + c))))
        if self.dim == 3:
            return np.asarray(0.5 / (1 + c))
        square = (c * c).ravel()
        far = square > _SPLIT
        if not far.any():
            return self._near(square).reshape(c.shape)
        out = np.empty_like(square)
        near = ~far
        if near.any():
            out[near] = self._near(square[near])
        out[far] = self._far(square[far])
        return out.reshape(c.shape)

    def _near(self, square: Floats) -> Floats:
        if self.dim < _SERIES_FROM:
            t, w = _legendre_points()
            below = np.exp((self._half - 1) * np.log1p(-square[:, None] * (t * t))) @ w
            return (0.5 - self.density_at_equator * np.sqrt(square) * below) * np.exp(-self._half * np.log1p(-square))
        order = self.dim - 1.5
        depth = -0.5 * np.log1p(-square)
        z = order * depth
        root = np.sqrt(z)
        gamma = math.sqrt(math.pi) * special.erfcx(root)  # e^z Gamma(1/2, z)
        coefficients = _equator_coefficients()
        total, power, a, factor = gamma.copy(), root, 0.5, 1.0
        reach = max(float(depth.max(initial=0.0)), 2 * self._terms / order)
        for n in range(1, self._terms):
            factor /= order * order
            if reach ** (2 * n) < 1e-19:  # bounds what is left relative to the first term
                break
            for _ in range(2):
                gamma = a * gamma + power
                power = power * z
                a += 1.0
            total += coefficients[n] * factor * gamma
        return np.asarray(0.5 * np.exp(0.5 * depth) * total / self._norm)

    def _far(self, square: Floats) -> Floats:
        x, w = self._points
        values = np.empty_like(square)
        for start in range(0, square.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            values[part] = (1.0 / np.sqrt(1.0 - (1.0 - square[part])[:, None] * x)) @ w
        return np.asarray((0.5 * self.density_at_equator / self._half) * values)


@lru_cache(maxsize=64)
def _beta_points(half: float) -> tuple[Floats, Floats]:
    """Gauss points of the law Beta(half, 1), from the eigenvectors of its three-term recurrence.

    Large ones are those of e^(-x/half), x exponential. scipy's roots_jacobi takes longer to load than to run.
    Reference: Golub and Welsch 1969, Mathematics of Computation 23.
    """
    n = np.arange(1, _NODES, dtype=np.float64)
    if half >= _LAGUERRE_FROM:
        x, w = _gauss_points(np.append(1.0, 2 * n + 1), n)
        return np.exp(-x / half), w
    m = 2 * n + half
    middles = np.append((half - 1) / (half + 1), (half - 1) ** 2 / ((m - 1) * (m + 1)))
    return _gauss_points(0.5 + 0.5 * middles, n * (n + half - 1) / ((m - 1) * np.sqrt((m - 2) * m)))


def _gauss_points(diagonal: Floats, beside: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights of the law whose orthonormal polynomials have these coefficients."""
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    weights = np.square(vectors[0])
    return values, weights / weights.sum()


def _legendre_points() -> tuple[Floats, Floats]:
    x, w = legendre(16)
    return (1 + x) / 2, w / 2
