"""The least-error Laplace noise of each sensitivity set, under pure differential privacy."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from shapedp.mechanisms.families.base import DoesNotApplyError, Family, Floats, Request
from shapedp.noise import DiscreteLaplace, Laplace, Law
from shapedp.noise.laplace import MAX_STEPS
from shapedp.privacy.losses import LaplaceLoss, loss_of
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity

_UP = 1 + 2.0**-44
_GRID_BITS = 20


def _law(request: Request) -> Law:
    scales = _shape(request.sensitivity, request)
    if request.delta == 0:
        return _on_grid(scales, request)
    return Laplace(scales[0], request.sensitivity.dim) if scales.size == 1 else Laplace(scales)


@singledispatch
def _shape(sensitivity: Sensitivity, request: Request) -> Floats:
    raise DoesNotApplyError(f"no Laplace shape is known for the set {sensitivity.kind!r}")


@_shape.register(L1)
def _cross(sensitivity: L1, request: Request) -> Floats:
    """b = radius/epsilon: only the smallest scale counts. Reference: Dwork et al. 2006, Proposition 1."""
    return np.array([sensitivity.radius / request.epsilon * _UP])


@_shape.register(Box)
def _box(sensitivity: Box, request: Request) -> Floats:
    """b_i = (l_i/w_i)^(1/3) sum_j (l_j^2 w_j)^(1/3)/epsilon. Reference: i.n.i.d. noise paper, Theorem 4."""
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
    roots = np.broadcast_to(request.root_weights(), sensitivity.dim)
    sums = np.add.reduceat(roots, sensitivity.starts)
    top = float(sensitivity.radii.max())
    relative, sizes = sensitivity.radii / top, sensitivity.sizes
    total = float(np.cbrt(np.square(sums * relative)).sum())
    outer = np.cbrt(relative / np.square(sums)) * (total * top / request.epsilon * _UP)
    return np.asarray(np.sqrt(np.repeat(sums, sizes) / roots) * np.repeat(outer, sizes))


def _on_grid(scales: Floats, request: Request) -> DiscreteLaplace:
    """Scales rounded up to whole steps of a grid so fine that rounding the input costs about 2^-20 of epsilon."""
    dim, epsilon = request.sensitivity.dim, request.epsilon
    bits = min(_GRID_BITS + math.ceil(math.log2(dim / min(epsilon, 1.0))), MAX_STEPS.bit_length() - 3)
    exponent = np.frexp(np.where(scales > 0, scales, 1.0))[1]
    if int(exponent.min()) - bits < -1000:
        raise DoesNotApplyError("the noise scale is too small for a grid of floats: measure x in smaller units")
    grid = np.ldexp(1.0, exponent - bits)
    cost = float(np.where(scales > 0, grid / np.where(scales > 0, scales, 1.0), 0.0).sum())
    margin = 2.0**-40 + cost * (dim if scales.size == 1 else 1) / epsilon
    while margin < 0.5:
        law = DiscreteLaplace(np.ceil(scales * (1 + margin) / grid), grid, dim)
        loss = loss_of(law, request.sensitivity)
        if isinstance(loss, LaplaceLoss) and loss.pure <= epsilon:
            return law
        margin *= 2
    raise DoesNotApplyError(f"epsilon = {epsilon:g} is too small for exact noise on a grid in dimension {dim}")


FAMILY = Family("laplace", _law)
