"""The least-error Gaussian of each sensitivity set."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from shapedp.mechanisms.families.base import DoesNotApplyError, Family, Floats, Request, by_slice, optimal_scales
from shapedp.noise import Gaussian, Law
from shapedp.privacy.losses import GaussianLoss
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity, Slices

_UP = 1 + 2.0**-44


def _law(request: Request) -> Gaussian:
    if request.delta == 0:
        raise DoesNotApplyError("Gaussian noise cannot meet delta = 0: use Laplace noise, or allow a delta > 0")
    mu = GaussianLoss.calibrate(request.epsilon, request.delta).mu
    return _shape(request.sensitivity, mu, request)


@singledispatch
def _shape(sensitivity: Sensitivity, mu: float, request: Request) -> Gaussian:
    raise DoesNotApplyError(f"no Gaussian shape is known for the set {sensitivity.kind!r}")


@_shape.register(L2)
def _ball(sensitivity: L2, mu: float, request: Request) -> Gaussian:
    """The smallest semi-axis of the noise decides: isotropic (in the ellipsoid's axes) for every weighting."""
    sigma = sensitivity.radius / mu * _UP
    if sensitivity.scales is None:
        return Gaussian(sigma, sensitivity.dim)
    return Gaussian(sensitivity.scales * sigma)


@_shape.register(L1)
def _cross(sensitivity: L1, mu: float, request: Request) -> Gaussian:
    """The vertices radius e_i decide, each on its own: isotropic."""
    return Gaussian(sensitivity.radius / mu * _UP, sensitivity.dim)


@_shape.register(Box)
def _box(sensitivity: Box, mu: float, request: Request) -> Gaussian:
    """s_i^2 = (l_i/sqrt(w_i)) sum_j l_j sqrt(w_j)/mu^2; s_i^(p+2) ~ l_i^2/w_i for sum w_i E |n_i|^p.

    Reference: i.n.i.d. noise paper, Theorem 4 and (9) with exact mu; the weight enters as its square root.
    """
    power = request.measure.power
    if power != 2:
        weights = np.ones(1) if request.weights is None else request.weights
        return Gaussian(optimal_scales(sensitivity.profile, weights, power, 2, mu) * _UP)
    return Gaussian(_optimal(sensitivity.profile, request.root_weights(), mu))


@_shape.register(Blocks)
def _blocks(sensitivity: Blocks, mu: float, request: Request) -> Gaussian:
    """s_m^2 = (C_m/sqrt(W_m)) sum_j C_j sqrt(W_j)/mu^2, W_m the sum of the weights in block m.

    For sum w_i E |n_i|^p s_m^(p+2) ~ C_m^2/W_m; for the worst coordinate the largest weight of the block counts.
    """
    power = request.measure.power
    if power != 2:
        weights = np.broadcast_to(request.root_weights() ** 2, sensitivity.dim)
        combine = np.maximum if request.measure.maximum else np.add
        blocks = combine.reduceat(weights, sensitivity.starts)
        return Gaussian(optimal_scales(sensitivity.radii, blocks, power, 2, mu) * _UP, sizes=sensitivity.sizes)
    if request.weights is None:
        roots = np.sqrt(sensitivity.sizes.astype(np.float64))
    else:
        roots = np.sqrt(np.add.reduceat(request.weights, sensitivity.starts))
    return Gaussian(_optimal(sensitivity.radii, roots, mu), sizes=sensitivity.sizes)


@_shape.register(Slices)
def _slices(sensitivity: Slices, mu: float, request: Request) -> Gaussian:
    """Slices are blocks in another order."""
    return Gaussian(sensitivity.in_place(_blocks(sensitivity.blocks, mu, by_slice(sensitivity, request)).scales))


def _optimal(bounds: Floats, roots: Floats, mu: float) -> Floats:
    """Scales that minimise sum roots_i^2 s_i^2 subject to sum bounds_i^2/s_i^2 = mu^2.

    Bounds are divided by their largest entry first, so that products neither overflow nor vanish.
    """
    top = float(bounds.max())
    scales: Floats = bounds / top
    total = float(scales.sum() if roots.size == 1 else scales @ roots)
    if roots.size > 1:
        scales /= roots
    np.sqrt(scales, out=scales)
    scales *= math.sqrt(total) * (top / mu) * _UP
    scales.setflags(write=False)
    return scales


def _why(request: Request, law: Law) -> str:
    sensitivity = request.sensitivity
    one = np.ones(1)
    alike = Gaussian(sensitivity.l2_reach(one)[1] / sensitivity.l2_reach(law.scales)[1], sensitivity.dim)
    gain = alike.expected_error(request.error, request.weights) / law.expected_error(request.error, request.weights)
    reason = f"its privacy loss adds up in squares over the {sensitivity.dim} coordinates"
    if gain > 1.01:
        reason += f", and scales that follow the bounds save a factor of {gain:.3g} over one scale for all"
    return reason


FAMILY = Family("gaussian", _law, every_measure=True, why=_why)
