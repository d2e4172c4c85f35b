"""The least-error Laplace noise of each sensitivity set: in closed form under pure DP, numerically for delta > 0."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from shapedp.mechanisms.families.base import DoesNotApplyError, Family, Floats, Request, by_slice, optimal_scales
from shapedp.mechanisms.families.tilted import least_error
from shapedp.noise import DiscreteLaplace, Laplace, Law
from shapedp.noise.laplace import MAX_STEPS
from shapedp.privacy.losses import LaplaceLoss, loss_of
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity, Slices

_UP = 1 + 2.0**-44
_GRID_BITS = 20
WORTH = 1e-4  # a delta that relaxes epsilon by less than this part is not spent


def _law(request: Request) -> Law:
    scales = _shape(request.sensitivity, request)
    if request.delta == 0:
        return _on_grid(scales, request)
    scales = _relaxed(request.sensitivity, scales, request)
    return Laplace(scales[0], request.sensitivity.dim) if scales.size == 1 else Laplace(scales)


@singledispatch
def _relaxed(sensitivity: Sensitivity, pure: Floats, request: Request) -> Floats:
    """What delta > 0 saves over the pure scales, where the worst difference is known: nothing by default."""
    return pure


@_relaxed.register(L1)
def _relaxed_cross(sensitivity: L1, pure: Floats, request: Request) -> Floats:
    """One coordinate decides: delta = 1 - e^((epsilon - a)/2) at a = radius/b."""
    relaxed = request.epsilon - 2 * math.log1p(-request.delta)
    return np.array([sensitivity.radius / relaxed * _UP]) if relaxed > request.epsilon * (1 + WORTH) else pure


@_relaxed.register(Box)
def _relaxed_box(sensitivity: Box, pure: Floats, request: Request) -> Floats:
    """Every coordinate at its top: delta >= 2^-K (1 - e^(epsilon - sum a)), which bounds what can be saved."""
    shown = request.delta * 2.0 ** min(int((sensitivity.profile > 0).sum()), 1000)
    if shown < 1 and -math.log1p(-shown) < WORTH * request.epsilon:
        return pure
    found = least_error(sensitivity, request, Laplace(pure))
    return pure if found is None else found.scales


@singledispatch
def _shape(sensitivity: Sensitivity, request: Request) -> Floats:
    raise DoesNotApplyError(f"no Laplace shape is known for the set {sensitivity.kind!r}")


@_shape.register(L1)
def _cross(sensitivity: L1, request: Request) -> Floats:
    """b = radius/epsilon: only the smallest scale counts. Reference: Dwork et al. 2006, Proposition 1."""
    return np.array([sensitivity.radius / request.epsilon * _UP])


@_shape.register(Box)
def _box(sensitivity: Box, request: Request) -> Floats:
    """b_i = (l_i/w_i)^(1/3) sum_j (l_j^2 w_j)^(1/3)/epsilon; b_i^(p+1) ~ l_i/w_i for sum w_i E |n_i|^p.

    Reference: i.n.i.d. noise paper, Theorem 5 and (12).
    """
    if request.measure.power != 2:
        weights = np.ones(1) if request.weights is None else request.weights
        return optimal_scales(sensitivity.profile, weights, request.measure.power, 1, request.epsilon) * _UP
    top = float(sensitivity.profile.max())
    roots: Floats = sensitivity.profile / top
    if request.weights is not None:
        roots /= request.weights
    np.cbrt(roots, out=roots)
    total = float(roots @ roots if request.weights is None else np.square(roots) @ request.weights)
    roots *= total * top / request.epsilon * _UP
    return roots


@_shape.register(L2)
def _ball(sensitivity: L2, request: Request) -> Floats:
    """|c/b|_2 radius <= epsilon for axes c: b_i^2 = (c_i/sqrt(w_i)) sum_j c_j sqrt(w_j) radius^2/epsilon^2."""
    if request.measure.power != 2:
        weights = np.broadcast_to(request.root_weights() ** 2, sensitivity.dim)
        bounds = sensitivity.radius * (np.ones(sensitivity.dim) if sensitivity.scales is None else sensitivity.scales)
        return optimal_scales(bounds, weights, request.measure.power, 2, request.epsilon) * _UP
    axes = np.ones(1) if sensitivity.scales is None else sensitivity.scales
    top = float(axes.max())
    axes, roots = axes / top, request.root_weights()
    products = axes * roots
    total = float(products.sum()) * (sensitivity.dim if products.size == 1 else 1)
    return np.asarray(np.sqrt(axes / roots * total) * (sensitivity.radius * top / request.epsilon * _UP))


@_shape.register(Blocks)
def _blocks(sensitivity: Blocks, request: Request) -> Floats:
    """Per block n_m = |1/b|_2 and least error (sum_i sqrt(w_i))^2/n_m^2; then sum C_m n_m = epsilon.

    With A_m the sum of sqrt(w) in block m: n_m = (A_m^2/C_m)^(1/3) epsilon/sum_j (A_j C_j)^(2/3), and
    b_i^2 = A_m/(sqrt(w_i) n_m^2).
    """
    if request.measure.power != 2:
        return _blocks_powered(sensitivity, request)
    roots = np.broadcast_to(request.root_weights(), sensitivity.dim)
    sums = np.add.reduceat(roots, sensitivity.starts)
    top = float(sensitivity.radii.max())
    relative, sizes = sensitivity.radii / top, sensitivity.sizes
    total = float(np.cbrt(np.square(sums * relative)).sum())
    outer = np.cbrt(relative / np.square(sums)) * (total * top / request.epsilon * _UP)
    return np.asarray(np.sqrt(np.repeat(sums, sizes) / roots) * np.repeat(outer, sizes))


@_shape.register(Slices)
def _slices(sensitivity: Slices, request: Request) -> Floats:
    """Slices are blocks in another order."""
    return sensitivity.in_place(_blocks(sensitivity.blocks, by_slice(sensitivity, request)))


def _blocks_powered(sensitivity: Blocks, request: Request) -> Floats:
    """Within a block b_i^(p+2) ~ 1/w_i costs A_m/n_m^p, A_m = (sum w_i^(2/(p+2)))^((p+2)/2); then as for a box."""
    power = request.measure.power
    weights = np.broadcast_to(request.root_weights() ** 2, sensitivity.dim)
    exponent = 0.5 if request.measure.maximum else 1 / (power + 2)
    inner = np.add.reduceat(weights ** (2 * exponent), sensitivity.starts)
    costs = inner if request.measure.maximum else inner ** ((power + 2) / 2)
    outer = optimal_scales(sensitivity.radii, costs, power, 1, request.epsilon) * _UP
    return np.asarray(weights**-exponent * np.repeat(np.sqrt(inner) * outer, sensitivity.sizes))


def _on_grid(scales: Floats, request: Request) -> DiscreteLaplace:
    """Scales rounded up to whole steps of a grid so fine that rounding the input costs about 2^-20 of epsilon."""
    dim, epsilon = request.sensitivity.dim, request.epsilon
    bits = min(_GRID_BITS + math.ceil(math.log2(dim / min(epsilon, 1.0))), MAX_STEPS.bit_length() - 3)
    exponent = np.frexp(np.where(scales > 0, scales, 1.0))[1]
    if int(exponent.min()) - bits < -1000:
        raise DoesNotApplyError("the noise scale is too small for a grid of floats: measure x in smaller units")
    grid = np.ldexp(1.0, exponent - bits)
    if request.sensitivity.whole:
        grid = np.minimum(grid, 1.0)
    cost = float(np.where(scales > 0, grid / np.where(scales > 0, scales, 1.0), 0.0).sum())
    cost = 0.0 if request.sensitivity.unrounded(grid) else cost
    margin = 2.0**-40 + cost * (dim if scales.size == 1 else 1) / epsilon
    while margin < 0.5:
        law = DiscreteLaplace(np.ceil(scales * (1 + margin) / grid), grid, dim)
        loss = loss_of(law, request.sensitivity)
        if isinstance(loss, LaplaceLoss) and loss.pure <= epsilon:
            return law
        margin *= 2
    raise DoesNotApplyError(f"epsilon = {epsilon:g} is too small for exact noise on a grid in dimension {dim}")


@singledispatch
def _reason(sensitivity: Sensitivity) -> str:
    return "its peak at zero is sharp, which pays off while few coordinates decide or no delta is allowed"


@_reason.register(L1)
def _reason_cross(sensitivity: L1) -> str:
    return "a vertex of the L1 ball moves one coordinate only, and there Laplace noise is sharper than Gaussian"


@_reason.register(Box)
def _reason_box(sensitivity: Box) -> str:
    bounds = sensitivity.profile / sensitivity.profile.max()
    effective = float(bounds.sum() ** 2 / (bounds @ bounds))
    return f"few coordinates decide (about {effective:.3g} of {bounds.size}), and there its sharp peak at zero pays off"


FAMILY = Family("laplace", _law, every_measure=True, why=lambda request, law: _reason(request.sensitivity))
