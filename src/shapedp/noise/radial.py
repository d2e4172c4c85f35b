"""Spherical noise: a radius of generalised gamma law times a uniform direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.boundary.documents import described
from shapedp.noise.base import Floats, Law, confidence_level
from shapedp.numerics.checks import count, numeric, positive, size
from shapedp.numerics.radius import RadiusRule
from shapedp.numerics.sphere import Cap
from shapedp.sampling import GAUSSIAN, Source, grid_for, rounded_sum

_BLOCK = 1 << 18
_SMOOTHING_BITS = 8
_REFINED = 1 << 52  # uniforms below 2^-12 take a second word
_NORMAL_ERROR = 2.0**-43
DEVIATIONS = 38.0  # a normal exceeds so many of its deviations with probability below e^-700
_SURE = 400  # from this dimension on |G| < sqrt(dim)/2 has probability below 1e-55


@dataclass(frozen=True)
class Radial(Law):
    """Density ~ |x|^(a - dim) exp(-(|x|/scale)^b) on R^dim: the radius is scale times Gamma(a/b)^(1/b).

    a = dim, b = 2 is Gaussian (scale = sigma sqrt 2); a = dim, b = 1 the multivariate Laplace law; b = 2 is
    sigma chi_a times a direction, and a = 1 among these is "product noise". `radial.gaussian`, `radial.laplace`
    and `radial.chi` name them.

    A release adds an independent N(0, `smoothing`^2) per coordinate, at most 2^-16 of the variance: it turns the
    rounding errors of radius and direction into `slip`, a bound on what they cost (see `add_to`).
    """

    kind: ClassVar[str] = "radial"
    dim: int
    a: float
    b: float
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", size("dim", self.dim, least=2))
        for name in ("a", "b", "scale"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        try:
            inside = 2.0**-900 < self.second_moment < 2.0**900
        except OverflowError:
            inside = False
        if not inside:
            raise ValueError("the radius leaves the range of floats: measure the query in other units")

    @cached_property
    def _rule(self) -> RadiusRule:
        return RadiusRule(self.a, self.b)

    @property
    def scales(self) -> Floats:
        return np.array([self.scale])

    @property
    def mean_squared_radius(self) -> float:
        """E R^2 = scale^2 Gamma((a + 2)/b)/Gamma(a/b), without the smoothing."""
        k = self.a / self.b
        return self.scale**2 * math.exp(2 / self.b * math.log(k)) * (1 + self._rule.mean_excess(2.0))

    @property
    def smoothing(self) -> float:
        """The standard deviation of the Gaussian added on release: a power of two, 2^-9 to 2^-8 of the rms."""
        rms = math.sqrt(self.mean_squared_radius / self.dim)
        return math.ldexp(1.0, math.frexp(rms)[1] - 1 - _SMOOTHING_BITS)

    def variances(self) -> Floats:
        return np.array([self.mean_squared_radius / self.dim + self.smoothing**2])

    def log_density(self, x: Floats) -> Floats:
        """log p, without the smoothing; +inf at 0 if a < dim."""
        r = np.sqrt(np.square(np.asarray(x, dtype=np.float64)).sum(-1))
        area = math.log(2) + 0.5 * self.dim * math.log(math.pi) - special.gammaln(self.dim / 2)
        norm = math.log(self.b) - self.a * math.log(self.scale) - special.gammaln(self.a / self.b) - area
        with np.errstate(divide="ignore"):
            pole = (self.a - self.dim) * np.log(r) if self.a != self.dim else 0.0
        return np.asarray(norm + pole - (r / self.scale) ** self.b)

    def radius_quantile(self, probability: Floats) -> Floats:
        """The radius exceeded with probability 1 - p, at each p in [0, 1]."""
        return np.asarray(self.scale * special.gammaincinv(self.a / self.b, probability) ** (1 / self.b))

    def squared_norm_moments(self) -> tuple[float, float, float, float]:
        """Mean, variance, skewness and kurtosis of |n|^2, without the smoothing."""
        excess, second, third, fourth = self._rule.central_moments(2.0)
        unit = self.mean_squared_radius / (1 + excess)
        return self.mean_squared_radius, second * unit**2, third / second**1.5, fourth / second**2

    def half_widths(self, confidence: float) -> Floats:
        """P(|n_i| <= c) = E[1 - 2 P(X >= c/R)], X a coordinate of a uniform direction; solved for c."""
        from scipy import optimize

        tail = 1 - confidence_level(confidence)
        cap, (z, weights) = Cap(self.dim), self._rule.nodes
        radii = self.scale * np.exp((z + math.log(self.a / self.b)) / self.b)

        def exceeds(c: float) -> float:
            cosine = np.minimum(c / radii, 1 - 2.0**-53)
            return float((2 * np.exp(cap.log_weight(cosine)) * cap.scaled(cosine)) @ weights) - tail

        top = float(radii.max())
        return np.array([optimize.brentq(exceeds, 0.0, top, xtol=1e-14 * top, rtol=1e-12)])

    @property
    def grid(self) -> float:
        """The grid of releases: a power of two, 2^-17 to 2^-16 of the rms of a coordinate."""
        return float(grid_for(math.sqrt(self.mean_squared_radius / self.dim)))

    @property
    def slip(self) -> tuple[float, float]:
        """(x, p): what is released and radial + Gaussian smoothing are within e^x of each other, outside probability p.

        Guarantee: P(S) <= e^x P'(S) + p both ways. The float radius errs by 2^-40 (relative), normals by 2^-43,
        so that noise = radius times direction errs by at most e = error * radius in L2 norm; a Gaussian of standard
        deviation `smoothing` moved by e is Gaussian privacy with mu = e/smoothing, and 38 mu bounds its loss
        outside probability e^-700. p holds what couplings miss: a radius beyond its 1e-40 quantile, uniforms below
        2^-71, and for dim < 400 normals whose norm rounds across the rejection threshold.
        """
        root = math.sqrt(self.dim)
        least = self._least_norm() if self.dim < _SURE else root / 2
        direction = 2 * _NORMAL_ERROR * root / least
        error = direction + self._rule.error + 2.0**-44
        reach = self.scale * math.exp((self._rule.far + math.log(self.a / self.b)) / self.b)
        mu = (error * reach + 2.0**-52 * self.grid * root) / self.smoothing
        missed = 1e-40 + self.dim * 2.0**-71
        if self.dim < _SURE:
            log_chi = (self.dim - 1) * math.log(least) - (self.dim / 2 - 1) * math.log(2) - math.lgamma(self.dim / 2)
            missed += 8 * _NORMAL_ERROR * root * math.exp(log_chi)
        return DEVIATIONS * mu, missed

    def _least_norm(self) -> float:
        return 2.0**-8 if self.dim <= 8 else math.sqrt(self.dim) / 32

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        """x + radius * direction + smoothing, rounded to `grid`; one draw per vector along the last axis.

        Guarantee: an exact post-processing of x + n' + N(0, smoothing^2), n' a float vector drawn without a look
        at x and within the error of `slip` of a radial draw. Memory: one vector beside x.
        """
        x = numeric("x", x)
        rows = x.reshape(-1, self.dim)
        out = np.empty(rows.shape, dtype=np.float32 if x.dtype == np.float32 else np.float64)
        group = max(1, _BLOCK // self.dim)
        for top in range(0, len(rows), group):
            some = slice(top, top + group)
            noise = self._draw(len(rows[some]), source)
            for left in range(0, self.dim, _BLOCK):
                part = (some, slice(left, left + _BLOCK))
                steps = np.asarray(rows[part], dtype=np.float64) / self.grid
                whole = np.rint(steps)
                near = (steps - whole) * self.grid + noise[:, part[1]]
                out[part] = whole * self.grid + rounded_sum(near, "gaussian", self.smoothing, self.grid, source)
        return out.reshape(x.shape)

    def draw_radii(self, n: int, source: Source) -> Floats:
        """n independent radii from 128-bit uniforms, without the smoothing."""
        words = source.words(2 * count("n", n))
        low, high = (2.0**-64 * (w[::2] + 2.0**-64 * (w[1::2] + 0.5)) for w in (words, ~words))
        return self.scale * self._rule.radii(low, high)

    def _draw(self, n: int, source: Source) -> Floats:
        """n draws without the smoothing: normals, scaled in place to random radii."""
        noise, norms = np.empty((n, self.dim)), np.zeros(n)
        todo = np.arange(n)
        while todo.size:
            squares = np.zeros(todo.size)
            for left in range(0, self.dim, _BLOCK):
                width = min(_BLOCK, self.dim - left)
                part = _normals(todo.size * width, source).reshape(todo.size, width)
                noise[todo, left : left + width] = part
                squares += np.square(part, out=part).sum(axis=1)
            norms[todo] = np.sqrt(squares)
            todo = todo[norms[todo] < self._least_norm()] if self.dim < _SURE else todo[:0]
        noise *= (self.draw_radii(n, source) / norms)[:, None]
        return noise

    def to_json(self) -> dict[str, Any]:
        return {"law": self.kind, "dim": self.dim, "a": self.a, "b": self.b, "scale": self.scale}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> Radial:
        """What `to_json` wrote."""
        return cls(data["dim"], data["a"], data["b"], data["scale"])


def chi(nu: float, sigma: float, dim: int) -> Radial:
    """sigma chi_nu times a uniform direction."""
    return Radial(dim, nu, 2.0, positive("sigma", sigma) * math.sqrt(2))


def gaussian(sigma: float, dim: int) -> Radial:
    """N(0, sigma^2) in every coordinate, as a radial law."""
    return chi(float(dim), sigma, dim)


def laplace(scale: float, dim: int) -> Radial:
    """Density ~ exp(-|x|_2/scale): the radius has law Gamma(dim)."""
    return Radial(dim, float(dim), 1.0, scale)


def _normals(n: int, source: Source) -> Floats:
    """n standard normals by their quantile function; uniforms below 2^-12 take 53 more bits."""
    words = source.words(n).view(np.int64)
    sizes = np.where(words >= 0, words, ~words)
    uniform = sizes + 0.5
    small = np.flatnonzero(sizes < _REFINED)
    if small.size:
        extra = (source.words(small.size) >> np.uint64(11)).astype(np.float64) + 0.5
        uniform[small] = sizes[small] + extra * 2.0**-53
    uniform *= 2.0**-64
    GAUSSIAN.magnitude(uniform)
    return np.copysign(uniform, words, out=uniform)
