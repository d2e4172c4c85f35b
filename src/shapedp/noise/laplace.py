"""Laplace noise; the least-error shape of each set: in closed form under pure DP, numerically for delta > 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import ClassVar

import numpy as np

from shapedp.noise.base import Law, confidence_level, of_order, registered
from shapedp.noise.discrete_laplace import DiscreteLaplace
from shapedp.noise.request import DoesNotApplyError, Request, by_slice
from shapedp.noise.spread import SpreadLaw
from shapedp.noise.tilted import least_error
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_512
from shapedp.privacy.losses import LaplaceLoss
from shapedp.sampling import LAPLACE, Quantile
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity, Slices

WORTH = 1e-4  # a delta that relaxes epsilon by less than this part is not spent


@registered(family="laplace", every_measure=True)
@dataclass(frozen=True, eq=False, init=False)
class Laplace(SpreadLaw):
    """Independent Laplace coordinates with density exp(-|x|/b)/(2 b): `Laplace(b, dim=M)` or `Laplace(vector)`.

    Parameters: `scale` is b, one number (with `dim`), one per coordinate, or one per block of `sizes`.

    Example:
        >>> Laplace([1.0, 2.0]).variances().tolist()
        [2.0, 8.0]
    """

    kind: ClassVar[str] = "laplace"
    phrase: ClassVar[str] = "Laplace noise, independent in every coordinate"
    quantile: ClassVar[Quantile] = LAPLACE

    def log_density(self, x: Floats) -> Floats:
        scales = self.spread.per_coordinate()
        return np.asarray(-(np.abs(x) / scales).sum(-1) - np.log(2 * scales).sum())

    def variances(self) -> Floats:
        return 2 * np.square(self.scales)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """b^p Gamma(p + 1)."""
        return np.asarray(self.scales**p * math.gamma(p + 1))

    def half_widths(self, confidence: float) -> Floats:
        return self.scales * -math.log1p(-confidence_level(confidence))

    def _loss(self, sensitivity: Sensitivity) -> LaplaceLoss:
        return LaplaceLoss.under_noise(sensitivity, self.scales)

    @classmethod
    def fitted(cls, request: Request) -> Law:
        scales = pure_scales(request.sensitivity, request)
        if request.delta == 0:
            return DiscreteLaplace.above(scales, request)
        scales = _relaxed(request.sensitivity, scales, request)
        return cls.over(scales, request.sensitivity.dim)

    @classmethod
    def why(cls, request: Request, law: Law) -> str:
        if isinstance(request.sensitivity, L1):
            return "a vertex of the L1 ball moves one coordinate only, and there Laplace noise is sharper than Gaussian"
        if not isinstance(request.sensitivity, Box):
            return "its peak at zero is sharp, which pays off while few coordinates decide or no delta is allowed"
        bounds = request.sensitivity.profile / request.sensitivity.profile.max()
        few = f"about {bounds.sum() ** 2 / (bounds @ bounds):.3g} of {bounds.size}"
        return f"few coordinates decide ({few}), and there its sharp peak at zero pays off"


@singledispatch
def _relaxed(sensitivity: Sensitivity, pure: Floats, request: Request) -> Floats:
    """What delta > 0 saves over the pure scales, where the worst difference is known: nothing by default."""
    return pure


@_relaxed.register(L1)
def _relaxed_cross(sensitivity: L1, pure: Floats, request: Request) -> Floats:
    """One coordinate decides: delta = 1 - e^((epsilon - a)/2) at a = radius/b."""
    relaxed = request.epsilon - 2 * math.log1p(-request.delta)
    return np.array([sensitivity.radius / relaxed * ABOVE_512]) if relaxed > request.epsilon * (1 + WORTH) else pure


@_relaxed.register(Box)
def _relaxed_box(sensitivity: Box, pure: Floats, request: Request) -> Floats:
    """Every coordinate at its top: delta >= 2^-K (1 - e^(epsilon - sum a)), which bounds what can be saved."""
    shown = request.delta * 2.0 ** min(int((sensitivity.profile > 0).sum()), 1000)
    if shown < 1 and -math.log1p(-shown) < WORTH * request.epsilon:
        return pure
    found = least_error(sensitivity, request, Laplace(pure), lambda scales, _: Laplace(scales))
    return pure if found is None else found.scales


@singledispatch
def pure_scales(sensitivity: Sensitivity, request: Request) -> Floats:
    """Scales b of least error with sup |v/b|_1 = epsilon over the set: pure DP for Laplace and logistic noise."""
    raise DoesNotApplyError(f"no Laplace shape is known for the set {sensitivity.kind!r}")


@pure_scales.register(L1)
def _cross(sensitivity: L1, request: Request) -> Floats:
    """b = radius/epsilon: only the smallest scale counts. Reference: Dwork et al. 2006, Proposition 1."""
    return np.array([sensitivity.radius / request.epsilon * ABOVE_512])


@pure_scales.register(Box)
def _box(sensitivity: Box, request: Request) -> Floats:
    """b_i = (l_i/w_i)^(1/3) sum_j (l_j^2 w_j)^(1/3)/epsilon; b_i^(p+1) ~ l_i/w_i for sum w_i E |n_i|^p.

    Reference: i.n.i.d. noise paper, Theorem 5 and (12).
    """
    return request.optimal_scales(sensitivity.profile, request.epsilon, order=1)


@pure_scales.register(L2)
def _ball(sensitivity: L2, request: Request) -> Floats:
    """|c/b|_2 radius <= epsilon for axes c: b_i^2 = (c_i/sqrt(w_i)) sum_j c_j sqrt(w_j) radius^2/epsilon^2."""
    axes = np.ones(1) if sensitivity.scales is None else sensitivity.scales
    sizes = np.broadcast_shapes(axes.shape, request.plain_weights().shape)
    bounds, copies = sensitivity.radius * np.broadcast_to(axes, sizes), sensitivity.dim // sizes[0]
    return request.optimal_scales(bounds, request.epsilon, order=2, copies=copies)


@pure_scales.register(Blocks)
def _blocks(sensitivity: Blocks, request: Request) -> Floats:
    """Within a block b_i^(p+2) ~ 1/w_i costs A_m/n_m^p, A_m = (sum w_i^(2/(p+2)))^((p+2)/2); then as for a box.

    Here n_m = |1/b|_2 over block m, and sum C_m n_m = epsilon. For the worst coordinate b_i^2 ~ 1/w_i.
    """
    power = request.measure.power
    weights = np.broadcast_to(request.plain_weights(), sensitivity.dim)
    exponent = 0.5 if request.measure.maximum else 1 / (power + 2)
    inner = np.add.reduceat(weights ** (2 * exponent), sensitivity.starts)
    costs = inner if request.measure.maximum else inner ** ((power + 2) / 2)
    outer = request.optimal_scales(sensitivity.radii, request.epsilon, order=1, weights=costs)
    return np.asarray(weights**-exponent * np.repeat(np.sqrt(inner) * outer, sensitivity.sizes))


@pure_scales.register(Slices)
def _slices(sensitivity: Slices, request: Request) -> Floats:
    """Slices are blocks in another order."""
    return sensitivity.in_place(_blocks(sensitivity.blocks, by_slice(sensitivity, request)))
