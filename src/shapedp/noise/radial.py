"""Spherical noise: a radius of generalised gamma law times a uniform direction; the best such law of an L2 ball."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.noise.base import Law, Traits, confidence_level, registered
from shapedp.noise.radial_shape import best_shape
from shapedp.noise.request import DoesNotApplyError, Request
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, laid_out, numeric, positive
from shapedp.numerics.outward import ABOVE_512, ABOVE_8192, BELOW_8192, ROUNDINGS_2, ROUNDINGS_512, ROUNDINGS_1024, UNIT
from shapedp.numerics.radius import RadiusRule
from shapedp.numerics.roots import between
from shapedp.numerics.sphere import Cap
from shapedp.privacy.losses import Loss, RadialLoss
from shapedp.privacy.losses.base import EPSILON_LIMIT
from shapedp.privacy.losses.radial import ReleasedRadialLoss
from shapedp.sampling import GAUSSIAN, Source, grid_for, rounded_sum
from shapedp.sensitivity import L2, Sensitivity

_BLOCK = 1 << 18
_MOST = 1e100  # of a and b
_SMOOTHING_BITS = 8
_SPARE = 2.0**-10  # of the slip, for the scale that is still to be found
_REFINED = 1 << 52  # uniforms below 2^-12 take a second word
_NORMAL_ERROR = ROUNDINGS_1024
DEVIATIONS = 38.0  # a normal exceeds so many of its deviations with probability below e^-700
_SURE = 400  # from this dimension on |G| < sqrt(dim)/2 has probability below 1e-55


@registered(family="radial", options=("shape", "progress"))
@dataclass(frozen=True)
class Radial(Law):
    """Density ~ |x|^(a - dim) exp(-(|x|/scale)^b) on R^dim: the radius is scale times Gamma(a/b)^(1/b).

    a = dim, b = 2 is Gaussian (scale = sigma sqrt 2); a = dim, b = 1 the multivariate Laplace law; b = 2 is
    sigma chi_a times a direction, and a = 1 among these is "product noise". `radial.gaussian`, `radial.laplace`
    and `radial.chi` name them.

    A release adds an independent N(0, `smoothing`^2) per coordinate, at most 2^-16 of the variance: it turns the
    rounding errors of radius and direction into `slip`, a bound on what they cost (see `add_to`).

    Parameters: `dim`, `a`, `b` and `scale` of the density.

    Example:
        >>> round(Radial(3, 3.0, 2.0, 1.0).second_moment, 2)  # Gaussian, sigma^2 = 1/2
        1.5
    """

    kind: ClassVar[str] = "radial"
    parameters: ClassVar[tuple[str, ...]] = ("dim", "a", "b", "scale")
    dim: int
    a: float
    b: float
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", count("dim", self.dim, least=2))
        for name in ("a", "b", "scale"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        try:
            fits = max(self.a, self.b) < _MOST and 2.0**-900 < self.second_moment < 2.0**900
        except OverflowError:
            fits = False
        if not fits:
            raise ValueError("a, b or the radius leave the range of floats: measure the query in other units")

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
        tail = 1 - confidence_level(confidence)
        cap, (z, weights) = Cap(self.dim), self._rule.nodes
        radii = self.scale * np.exp((z + math.log(self.a / self.b)) / self.b)

        def exceeds(c: float) -> float:
            cosine = np.minimum(c / radii, 1 - UNIT)
            return float((2 * np.exp(cap.log_weight(cosine)) * cap.scaled(cosine)) @ weights) - tail

        top = float(radii.max())
        return np.array([between(exceeds, (0.0, exceeds(0.0)), (top, exceeds(top)), 1e-14 * top)])

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
        error = direction + self._rule.error + ROUNDINGS_512
        reach = self.scale * math.exp((self._rule.far + math.log(self.a / self.b)) / self.b)
        mu = (error * reach + ROUNDINGS_2 * self.grid * root) / self.smoothing
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
        words = source.words(2 * laid_out(count("n", n)))
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

    def words(self, number: Callable[[float], str] = "{:.4g}".format) -> str:
        return (
            "a random length times a uniform direction: density proportional to "
            f"r^({number(self.a - self.dim)}) exp(-(r/s)^{number(self.b)}) at distance r, with s = {number(self.scale)}"
        )

    def traits(self) -> Traits:
        return Traits(fair=True, isotropic=True, grid=np.array([self.grid]))

    def radius_level(self, level: float) -> float | None:
        return float(self.radius_quantile(np.array([confidence_level(level)]))[0] / self.marginal_scales()[0])

    def _loss(self, sensitivity: Sensitivity) -> Loss:
        """Only the L2 reach counts: the noise is spherical."""
        ratio = sensitivity.l2_reach(self.scales)[1]
        return ReleasedRadialLoss(RadialLoss(self.dim, self.a, self.b, ratio), *self.slip)

    @classmethod
    def fitted(cls, request: Request) -> Radial:
        ball = request.sensitivity
        if not isinstance(ball, L2):
            raise DoesNotApplyError(f"spherical noise serves an L2 ball, not the set {ball.kind!r}")
        if ball.scales is not None:
            raise DoesNotApplyError("spherical noise serves a ball, not an ellipsoid: use Gaussian noise")
        dim, radius = ball.dim, ball.radius
        if dim < 2:
            raise DoesNotApplyError("spherical noise needs dim >= 2: in one dimension use Laplace or Gaussian noise")
        if request.epsilon > EPSILON_LIMIT:
            raise DoesNotApplyError(f"spherical noise is computed for epsilon of at most {EPSILON_LIMIT:g}")
        shape = request.options.get("shape")
        if shape is None:
            shape = best_shape(dim, request.epsilon, request.delta, progress=request.options.get("progress"))
        a, b = (positive(name, value) for name, value in zip(("a", "b"), shape, strict=True))
        if a > dim:
            raise DoesNotApplyError(f"a = {a:g} exceeds dim = {dim}: the longest shift would not be the worst")
        law = cls(dim, a, b, cls._estimated_scale(request, radius, a, b))
        for _ in range(4):  # the slip depends on the scale through its power of two, and a little more
            slip, missed = law.slip
            slip *= 1 + _SPARE
            epsilon = request.epsilon - 2 * slip * ABOVE_8192
            if request.delta == 0:
                raise DoesNotApplyError("releases of spherical noise in floats carry a delta > 0: ask for 1e-12, say")
            left = request.delta - (1 + math.exp(min(request.epsilon, 700.0))) * missed
            delta = left * math.exp(-slip) * BELOW_8192
            if not (epsilon > 0 and delta > 0):
                raise DoesNotApplyError("the claim is below what rounding in floats allows in this dimension")
            ratio = RadialLoss.calibrate(dim, a, b, epsilon, delta).ratio
            law = cls(dim, a, b, radius / ratio * ABOVE_512)
            if law.slip[0] <= slip and law.slip[1] <= missed:
                return law
        return cls(dim, a, b, law.scale * (1 + 1e-4))

    @staticmethod
    def _estimated_scale(request: Request, radius: float, a: float, b: float) -> float:
        """About the scale that meets a claim: its slip is nearly that of the law to come."""
        dim = request.sensitivity.dim
        try:
            return radius / math.exp(RadialLoss.estimated(dim, a, b, request.epsilon, request.delta)[0])
        except (ArithmeticError, ValueError):
            return radius


def chi(nu: float, sigma: float, dim: int) -> Radial:
    """sigma chi_nu times a uniform direction."""
    return Radial(dim, nu, 2.0, positive("sigma", sigma) * math.sqrt(2))


def gaussian(sigma: float, dim: int) -> Radial:
    """N(0, sigma^2) in every coordinate, as a radial law."""
    return chi(float(count("dim", dim)), sigma, dim)


def laplace(scale: float, dim: int) -> Radial:
    """Density ~ exp(-|x|_2/scale): the radius has law Gamma(dim)."""
    return Radial(dim, float(count("dim", dim)), 1.0, scale)


def _normals(n: int, source: Source) -> Floats:
    """n standard normals by their quantile function; uniforms below 2^-12 take 53 more bits."""
    words = source.words(n).view(np.int64)
    sizes = np.where(words >= 0, words, ~words)
    uniform = sizes + 0.5
    small = np.flatnonzero(sizes < _REFINED)
    if small.size:
        extra = (source.words(small.size) >> np.uint64(11)).astype(np.float64) + 0.5
        uniform[small] = sizes[small] + extra * UNIT
    uniform *= 2.0**-64
    GAUSSIAN.magnitude(uniform)
    return np.copysign(uniform, words, out=uniform)
