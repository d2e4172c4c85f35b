"""How far a sensitivity set reaches under Gaussian noise with Kronecker covariance: bounds on sup |W v|_2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from shapedp.noise.rotation import Mode
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_2, ROUNDINGS_128
from shapedp.privacy.losses import GaussianLoss
from shapedp.sensitivity import L1, L2, Blocks, Box, Hull, Sensitivity, Slices
from shapedp.sensitivity.hull import lengths

if TYPE_CHECKING:
    from shapedp.noise.tensor import TensorGaussian

_SWEEPS = 4
_ROUND = 2.0**-36  # relative rounding of sums of products over a few thousand terms, with room
_SINGULAR = ROUNDINGS_128  # relative error of computed singular values, per row


def tensor_loss(law: TensorGaussian, sensitivity: Sensitivity) -> GaussianLoss:
    """mu = sup |W v|_2 over the set, W = W_1 x ... x W_K with W_k = diag(1/s_k) R_k; rounding adds `law.slack`."""
    if any(mode.singular for mode in law.modes) and not _spared(law, sensitivity):
        return GaussianLoss(math.inf, math.inf)
    least, most = _reach(sensitivity, law)
    doubt = _ROUND + sum(mode.size for mode in law.modes if mode.rotation is not None) * _SINGULAR
    mu = (most + law.slack) * (1 + doubt)
    return GaussianLoss(mu, min(max(least * (1 - doubt) - law.slack, 0.0), mu))


def _spared(law: TensorGaussian, sensitivity: Sensitivity) -> bool:
    """Whether the directions without noise are coordinates that no person can change, or mix only such."""
    if not law.turned:
        return not (sensitivity.fixed() < (law.scales == 0)).any()
    mode = law.modes[0]
    if len(law.modes) > 1 or mode.rotation is None or not isinstance(sensitivity, Hull):
        return False
    return not mode.rotation.whole[mode.scales == 0][:, ~sensitivity.fixed()].any()


@singledispatch
def _reach(sensitivity: Sensitivity, law: TensorGaussian) -> tuple[float, float]:
    """Bounds on sup |W v|_2."""
    if not law.turned:
        return sensitivity.l2_reach(law.scales)
    raise TypeError(f"no bound is known for rotated noise on the set {sensitivity.kind!r}: use factors along the axes")


@_reach.register(L2)
def _ball(sensitivity: L2, law: TensorGaussian) -> tuple[float, float]:
    """radius prod_k |W_k|_2, exactly: spectral norms of a Kronecker product multiply."""
    if sensitivity.scales is None:
        reach = sensitivity.radius * _whole(law)
        return reach, reach
    if not law.turned:
        return sensitivity.l2_reach(law.scales)
    widest = sensitivity.radius * float(sensitivity.scales.max())
    return _ascent(sensitivity, law), widest * _whole(law)


@_reach.register(L1)
def _cross(sensitivity: L1, law: TensorGaussian) -> tuple[float, float]:
    """radius times the longest column of W: a vertex decides."""
    reach = sensitivity.radius * math.prod(float(np.linalg.norm(m.whitener, axis=0).max()) for m in law.modes)
    return reach, reach


@_reach.register(Box)
def _box(sensitivity: Box, law: TensorGaussian) -> tuple[float, float]:
    """Along the axes |l/s|_2, exactly. Rotated, a hard problem: at most ||W| l|_2 and |l|_2 |W|_2."""
    if not law.turned:
        return sensitivity.l2_reach(law.scales)
    far = law.transformed(sensitivity.profile, [np.abs(mode.whitener) for mode in law.modes])
    top = float(np.linalg.norm(sensitivity.profile)) * _whole(law)
    return _ascent(sensitivity, law), min(float(np.linalg.norm(far)), top)


@_reach.register(Blocks)
def _blocks(sensitivity: Blocks, law: TensorGaussian) -> tuple[float, float]:
    """Along the axes exactly; rotated at most |radii|_2 |W|_2."""
    if not law.turned:
        return sensitivity.l2_reach(law.scales)
    return _ascent(sensitivity, law), float(np.linalg.norm(sensitivity.radii)) * _whole(law)


@_reach.register(Slices)
def _slices(sensitivity: Slices, law: TensorGaussian) -> tuple[float, float]:
    """With the sliced mode along the axes |radii/s_k|_2 times the norms of the other modes, exactly.

    Attained by slices radii_m u, u the top singular vector of the other modes. A rotated sliced mode: at most
    ||W_k| radii|_2 and |W_k|_2 |radii|_2 times those norms; at least what signs of the slices reach.
    """
    if law.shape != sensitivity.shape:
        if law.turned:
            raise TypeError(f"slices of shape {sensitivity.shape} do not fit rotated noise of shape {law.shape}")
        return sensitivity.l2_reach(law.scales)
    mode, radii = law.modes[sensitivity.mode], sensitivity.radii
    others = math.prod(_norm(m) for k, m in enumerate(law.modes) if k != sensitivity.mode)
    if mode.rotation is None:
        noisy = radii > 0
        reach = others * float(np.linalg.norm(radii[noisy] / mode.scales[noisy]))
        return reach, reach
    gram, signs = mode.whitener.T @ mode.whitener, np.ones(radii.size)
    for _ in range(_SWEEPS):
        signs = np.where(gram @ (radii * signs) < 0, -1.0, 1.0)
    least = float(np.linalg.norm(mode.whitener @ (radii * signs)))
    most = min(float(np.linalg.norm(np.abs(mode.whitener) @ radii)), _norm(mode) * float(np.linalg.norm(radii)))
    return others * least, others * max(most, least)


@_reach.register(Hull)
def _hull(sensitivity: Hull, law: TensorGaussian) -> tuple[float, float]:
    """The longest |W v|_2 of a vertex, exactly: rounding is at most (sum n_k + 4) UNIT |W||v| in every entry."""
    if not law.turned:
        return sensitivity.l2_reach(law.scales)
    matrices = [_noisy(mode) for mode in law.modes] if len(law.modes) == 1 else [m.whitener for m in law.modes]
    unit = (sum(law.shape) + 4) * ROUNDINGS_2

    def images() -> Iterator[tuple[Floats, Floats]]:
        for rows in sensitivity.blocks():
            if len(matrices) == 1:
                image, room = rows @ matrices[0].T, np.abs(rows) @ np.abs(matrices[0]).T
            else:
                image = law.transformed(rows, matrices)
                room = law.transformed(np.abs(rows), [np.abs(one) for one in matrices])
            yield image, lengths(room) * unit

    return sensitivity.reach(images())


def _noisy(mode: Mode) -> Floats:
    """W_k without the rows that carry no noise."""
    if not mode.singular or mode.rotation is None:
        return mode.whitener
    noisy = mode.scales > 0
    return np.asarray(mode.rotation.matrix[noisy] / mode.scales[noisy, None])


def _norm(mode: Mode) -> float:
    """|W_k|_2, up to rounding."""
    if mode.rotation is None:
        return 1 / float(mode.scales[mode.scales > 0].min())
    return float(np.linalg.norm(mode.whitener, 2))


def _whole(law: TensorGaussian) -> float:
    """|W|_2, up to rounding."""
    return math.prod(map(_norm, law.modes))


def _ascent(sensitivity: Sensitivity, law: TensorGaussian) -> float:
    """|W v|_2 at a point v of the set that a few steps v -> argmax <W^T W v, .> reach: a lower bound."""
    grams = [mode.whitener.T @ mode.whitener for mode in law.modes]
    v, best = sensitivity.extreme(), 0.0
    for _ in range(_SWEEPS):
        image = law.transformed(v, grams)
        best = max(best, math.sqrt(max(float(v @ image), 0.0)))
        v = _furthest(sensitivity, image)
    return best


@singledispatch
def _furthest(sensitivity: Sensitivity, direction: Floats) -> Floats:
    """The point of the set furthest in a direction."""
    raise TypeError(f"no furthest point is known for the set {sensitivity.kind!r}")


@_furthest.register(L2)
def _(sensitivity: L2, direction: Floats) -> Floats:
    axes = np.ones(1) if sensitivity.scales is None else sensitivity.scales
    pulled = axes * direction
    return np.asarray(sensitivity.radius * axes * pulled / np.linalg.norm(pulled))


@_furthest.register(Box)
def _(sensitivity: Box, direction: Floats) -> Floats:
    return np.where(direction < 0, -sensitivity.profile, sensitivity.profile)


@_furthest.register(Blocks)
def _(sensitivity: Blocks, direction: Floats) -> Floats:
    norms = np.sqrt(np.add.reduceat(np.square(direction), sensitivity.starts))
    factor = sensitivity.radii / np.where(norms > 0, norms, 1.0)
    return np.asarray(np.repeat(factor, sensitivity.sizes) * direction)
