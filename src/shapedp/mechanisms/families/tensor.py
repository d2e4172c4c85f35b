"""The least-error Gaussian with Kronecker covariance of each set of tensors."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from shapedp.mechanisms.families.base import DoesNotApplyError, Family, Floats, Request
from shapedp.noise import TensorGaussian
from shapedp.noise.tensor import SLACK
from shapedp.numerics.modes import outer
from shapedp.privacy.losses import GaussianLoss, loss_of
from shapedp.sensitivity import L1, L2, Box, Sensitivity, Slices

_UP = 1 + 2.0**-34  # beyond what the loss allows for rounding
_ALIKE = 2.0**-40


def _law(request: Request) -> TensorGaussian:
    sensitivity = request.sensitivity
    if request.delta == 0:
        raise DoesNotApplyError("Gaussian noise cannot meet delta = 0: use Laplace noise, or allow a delta > 0")
    mu = GaussianLoss.calibrate(request.epsilon, request.delta).mu
    if request.options.get("factors") is not None:
        return _directed(TensorGaussian(request.options["factors"]), sensitivity, mu)
    if len(sensitivity.shape) == 1:
        raise DoesNotApplyError("the query is a vector: gaussian noise is the same, without modes")
    return _directed(TensorGaussian(_shape(sensitivity, request)), sensitivity, mu)


def _directed(law: TensorGaussian, sensitivity: Sensitivity, mu: float) -> TensorGaussian:
    """The least multiple of a law that stays within mu; mu scales as 1/multiple, the slack of rotations does not."""
    if law.shape != sensitivity.shape:
        raise DoesNotApplyError(f"factors give the shape {law.shape}, the query has {sensitivity.shape}")
    loss = loss_of(law, sensitivity)
    assert isinstance(loss, GaussianLoss)
    room = mu - (SLACK if law.turned else 0.0)
    if not (math.isfinite(loss.mu) and room > 0):
        raise DoesNotApplyError("factors leave a direction without noise, or epsilon is too small to turn x exactly")
    return law.times((loss.mu - law.slack) / room * _UP)


@singledispatch
def _shape(sensitivity: Sensitivity, request: Request) -> list[Floats | int]:
    """Factors of the best shape, up to a multiple."""
    raise DoesNotApplyError(f"no Kronecker shape is known for the set {sensitivity.kind!r}: try gaussian noise")


@_shape.register(L2)
@_shape.register(L1)
def _even(sensitivity: L2 | L1, request: Request) -> list[Floats | int]:
    """Isotropic: the set is the same in every direction, and the smallest axis of the noise decides."""
    if isinstance(sensitivity, L2) and sensitivity.scales is not None:
        return _product(sensitivity.scales.reshape(sensitivity.shape))
    return list(sensitivity.shape)


@_shape.register(Box)
def _box(sensitivity: Box, request: Request) -> list[Floats | int]:
    """s_i^2 proportional to l_i/sqrt(w_i), the diagonal optimum, where that is a product over the modes."""
    target = sensitivity.profile / request.root_weights()
    return _product(np.sqrt(target).reshape(sensitivity.shape))


@_shape.register(Slices)
def _slices(sensitivity: Slices, request: Request) -> list[Floats | int]:
    """s_m^2 proportional to C_m/sqrt(W_m), W_m the sum of the weights in slice m; one scale within a slice.

    Guarantee: least weighted error among all Gaussian covariances, not only Kronecker products: the set and the
    error are invariant under sign changes and, within a slice, only the smallest axis counts.
    """
    sums = np.ones(sensitivity.radii.size)
    if request.weights is not None:
        sums = request.weights.reshape(sensitivity.panels).sum(axis=(0, 2))
    factors: list[Floats | int] = list(sensitivity.shape)
    factors[sensitivity.mode] = np.sqrt(sensitivity.radii / sensitivity.radii.max() / np.sqrt(sums / sums.max()))
    return factors


def _product(tensor: Floats) -> list[Floats | int]:
    """Vectors whose outer product is the tensor; refused where there are none."""
    peak = np.unravel_index(int(tensor.argmax()), tensor.shape)
    top = float(tensor[peak])
    vectors = []
    for k in range(tensor.ndim):
        fibre: Any = (*peak[:k], slice(None), *peak[k + 1 :])
        vectors.append(tensor[fibre] / top)
    product = outer(vectors)
    if not np.abs(product * top - tensor).max() <= _ALIKE * top or ((product == 0) != (tensor == 0)).any():
        raise DoesNotApplyError("the best scales are not a product over the modes: gaussian noise serves this set")
    return list(vectors)


FAMILY = Family("tensor", _law, ("factors",))
