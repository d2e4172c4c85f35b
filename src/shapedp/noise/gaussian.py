"""Gaussian noise: isotropic, diagonal or block; the least-error shape of each sensitivity set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import ClassVar

import numpy as np
from scipy import special

from shapedp.noise.base import Law, confidence_level, of_order, registered
from shapedp.noise.request import DoesNotApplyError, Request, by_slice
from shapedp.noise.spread import SpreadLaw
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_512
from shapedp.privacy.losses import GaussianLoss
from shapedp.sampling import GAUSSIAN, Quantile
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity, Slices


def normal_moment(p: float) -> float:
    """E |z|^p of a standard normal z: 2^(p/2) Gamma((p + 1)/2)/sqrt(pi)."""
    return math.exp(0.5 * p * math.log(2) + math.lgamma((p + 1) / 2) - 0.5 * math.log(math.pi))


def normal_half_width(confidence: float) -> float:
    """c with P(|z| <= c) = confidence for a standard normal z."""
    return float(special.ndtri(0.5 + confidence_level(confidence) / 2))


def largest_mu(request: Request) -> float:
    """The largest mu whose Gaussian loss meets a request; refused for delta = 0."""
    if request.delta == 0:
        raise DoesNotApplyError("Gaussian noise cannot meet delta = 0: use Laplace noise, or allow a delta > 0")
    return GaussianLoss.calibrate(request.epsilon, request.delta).mu


@registered(family="gaussian", options=("gap",), every_measure=True)
@dataclass(frozen=True, eq=False, init=False)
class Gaussian(SpreadLaw):
    """N(0, diag(scale^2)): `Gaussian(s, dim=M)`, `Gaussian(vector)` or `Gaussian(vector, sizes=blocks)`.

    Parameters: `scale` is the standard deviation, one number (with `dim`), one per coordinate, or one per block of
    `sizes`. Coordinates of scale 0 carry no noise.

    Example:
        >>> Gaussian(2.0, dim=3).second_moment
        12.0
    """

    kind: ClassVar[str] = "gaussian"
    phrase: ClassVar[str] = "Gaussian noise, independent in every coordinate"
    quantile: ClassVar[Quantile] = GAUSSIAN
    isotropic: ClassVar[bool] = True

    def log_density(self, x: Floats) -> Floats:
        scales = self.spread.per_coordinate()
        z = np.asarray(x, dtype=np.float64) / scales
        return np.asarray(-0.5 * np.square(z).sum(-1) - np.log(scales).sum() - 0.5 * self.dim * math.log(2 * math.pi))

    def variances(self) -> Floats:
        return np.square(self.scales)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        return self.scales**p * normal_moment(p)

    def half_widths(self, confidence: float) -> Floats:
        return self.scales * normal_half_width(confidence)

    def radius_level(self, level: float) -> float | None:
        return float(np.sqrt(2 * special.gammaincinv(self.dim / 2, confidence_level(level))))

    def _loss(self, sensitivity: Sensitivity) -> GaussianLoss:
        """mu = sup |v/s|_2 over the set."""
        least, mu = sensitivity.l2_reach(self.scales)
        return GaussianLoss(mu, least)

    @classmethod
    def fitted(cls, request: Request) -> Law:
        return shape_of(request.sensitivity, largest_mu(request), request)

    @classmethod
    def why(cls, request: Request, law: Law) -> str:
        sensitivity = request.sensitivity
        if not isinstance(law, Gaussian):
            return f"its covariance follows the hull of what one person can change of the {sensitivity.dim} answers"
        alike = cls(sensitivity.l2_reach(np.ones(1))[1] / sensitivity.l2_reach(law.scales)[1], sensitivity.dim)
        gain = alike.expected_error(request.error, request.weights) / law.expected_error(request.error, request.weights)
        reason = f"its privacy loss adds up in squares over the {sensitivity.dim} coordinates"
        if gain > 1.01:
            reason += f", and scales that follow the bounds save a factor of {gain:.3g} over one scale for all"
        return reason


@singledispatch
def shape_of(sensitivity: Sensitivity, mu: float, request: Request) -> Law:
    """The noise of least error with this mu. A new set registers its own shape."""
    raise DoesNotApplyError(f"no Gaussian shape is known for the set {sensitivity.kind!r}")


@shape_of.register(L2)
def _ball(sensitivity: L2, mu: float, request: Request) -> Gaussian:
    """The smallest semi-axis of the noise decides: isotropic (in the ellipsoid's axes) for every weighting."""
    sigma = sensitivity.radius / mu * ABOVE_512
    if sensitivity.scales is None:
        return Gaussian(sigma, sensitivity.dim)
    return Gaussian(sensitivity.scales * sigma)


@shape_of.register(L1)
def _cross(sensitivity: L1, mu: float, request: Request) -> Gaussian:
    """The vertices radius e_i decide, each on its own: isotropic."""
    return Gaussian(sensitivity.radius / mu * ABOVE_512, sensitivity.dim)


@shape_of.register(Box)
def _box(sensitivity: Box, mu: float, request: Request) -> Gaussian:
    """s_i^2 = (l_i/sqrt(w_i)) sum_j l_j sqrt(w_j)/mu^2; s_i^(p+2) ~ l_i^2/w_i for sum w_i E |n_i|^p.

    Reference: i.n.i.d. noise paper, Theorem 4 and (9) with exact mu; the weight enters as its square root.
    """
    return Gaussian(request.optimal_scales(sensitivity.profile, mu, order=2))


@shape_of.register(Blocks)
def _blocks(sensitivity: Blocks, mu: float, request: Request) -> Gaussian:
    """s_m^2 = (C_m/sqrt(W_m)) sum_j C_j sqrt(W_j)/mu^2, W_m the sum of the weights in block m.

    For sum w_i E |n_i|^p s_m^(p+2) ~ C_m^2/W_m; for the worst coordinate the largest weight of the block counts.
    """
    worst = request.measure.maximum
    if request.weights is not None:
        weights = (np.maximum if worst else np.add).reduceat(request.weights, sensitivity.starts)
    else:
        weights = np.ones(1) if worst else sensitivity.sizes.astype(np.float64)
    scales = request.optimal_scales(sensitivity.radii, mu, order=2, weights=weights)
    return Gaussian(scales, sizes=sensitivity.sizes)


@shape_of.register(Slices)
def _slices(sensitivity: Slices, mu: float, request: Request) -> Gaussian:
    """Slices are blocks in another order."""
    return Gaussian(sensitivity.in_place(_blocks(sensitivity.blocks, mu, by_slice(sensitivity, request)).scales))
