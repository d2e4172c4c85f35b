"""The privacy loss of independent tensor laws side by side."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from shapedp.noise.stack import Stack
from shapedp.privacy.losses.base import Floats
from shapedp.privacy.losses.gaussian import GaussianLoss
from shapedp.privacy.losses.pairing import loss_of
from shapedp.sensitivity import L2, Blocks, Sensitivity

_ROUND = 2.0**-45


@loss_of.register(Stack)
def _stack(law: Stack, sensitivity: Sensitivity) -> GaussianLoss:
    """mu^2 = sum_m (radius_m max_p |W_p|_2)^2: within a block the difference may sit in its weakest law."""
    radii, sizes = _blocks(sensitivity)
    whole = [loss_of(one, L2(1.0, shape=one.shape)) for one in law.laws]
    ends = np.cumsum([one.dim for one in law.laws])
    block = np.searchsorted(np.cumsum(sizes), ends, side="left")
    starts = np.searchsorted(np.cumsum(sizes), ends - [one.dim for one in law.laws], side="right")
    if (block != starts).any():
        raise TypeError("a tensor law lies across two blocks of the set: clip by layers or as a whole")
    bounds = np.zeros((2, radii.size))
    for at, loss in zip(block, whole, strict=True):
        assert isinstance(loss, GaussianLoss)
        least = loss.mu if loss.least is None else loss.least
        bounds[:, at] = np.maximum(bounds[:, at], (least, loss.mu))
    low, high = (math.sqrt(math.fsum(np.square(radii * one))) for one in bounds)
    return GaussianLoss(high * (1 + _ROUND), low * (1 - _ROUND))


@singledispatch
def _blocks(sensitivity: Sensitivity) -> tuple[Floats, NDArray[np.int64]]:
    raise TypeError(f"no bound is known for tensor noise on the set {sensitivity.kind!r}: use Flat or PerLayer clips")


@_blocks.register(Blocks)
def _(sensitivity: Blocks) -> tuple[Floats, NDArray[np.int64]]:
    return sensitivity.radii, sensitivity.sizes


@_blocks.register(L2)
def _(sensitivity: L2) -> tuple[Floats, NDArray[np.int64]]:
    if sensitivity.scales is not None:
        raise TypeError("no bound is known for tensor noise on an ellipsoid")
    return np.array([sensitivity.radius]), np.array([sensitivity.dim])
