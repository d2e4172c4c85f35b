"""One engine for many shapes of blocks: the best precisions for shared weights on what a record moves."""

from __future__ import annotations

import math

import numpy as np

from shapedp.noise.rotation import Mode, Rotation
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.ellipsoid import Points, best_ellipsoid, nuclear_below
from shapedp.numerics.outward import BELOW_512, ROUNDINGS_64, UNIT
from shapedp.numerics.sums import sum_bounds

ROUNDS = 5000
STEEPEST = 1e3
FLOOR = 0.1  # of the gap: the weight that every vertex keeps
_QUIET = 2.0**-21  # of the largest precision, kept where no query asks
_LEAST = 1e-12  # of the largest eigenvalue, kept so that roots can be inverted


def best_precisions(
    shapes: list[Floats], weights: Floats, corners: Floats, gap: float, rows: list[Floats | None]
) -> tuple[list[Floats], float, float]:
    """The precisions of every shape of block, t, and the lower bound t^2, proved."""
    cells, wide = len(shapes[0]) // corners.shape[1], corners.shape[1]
    lam, floor = np.full((cells, len(corners)), 1 / (cells * len(corners))), FLOOR * gap / (cells * len(corners))
    first, power, before, kept = lam, 1.0, -math.inf, lam
    for _ in range(ROUNDS):
        roots, inverses, doubt = _roots(lam, corners)
        found = [_trace_root(_sandwich(shape, roots, wide)) for shape in shapes]
        t = float(sum(w * r.sum() for w, (r, _) in zip(weights, found, strict=True)))
        if t < before and power > 1:
            power, lam = max(power / 4, 1.0), kept
            before = -math.inf
            continue
        before, kept = t, lam
        forms = np.zeros_like(lam)
        for weight, (r, axes) in zip(weights, found, strict=True):
            half = _rows(axes * np.sqrt(r), inverses, wide).reshape(cells, wide, -1)
            seen = np.einsum("cv,kvr->kcr", corners, half)
            forms += weight / t * np.square(seen).sum(axis=-1)
        if forms.max() <= 1 + gap:
            break
        lam = lam * forms**power
        lam = np.maximum(lam / lam.sum(), floor * (first > 0))
        lam /= lam.sum()
        power = min(1.3 * power, STEEPEST)
    precisions = []
    low = 0.0
    for shape, weight, matrix, (r, axes) in zip(shapes, weights, rows, found, strict=True):
        half = _rows(axes * np.sqrt(r), inverses, wide)
        precisions.append(half @ half.T)
        if matrix is None:
            low += weight * _root_below(_sandwich(shape, roots, wide), r, axes) / math.sqrt(1 + doubt)
        else:
            seen = np.einsum("rkv,cv->rkc", matrix.reshape(-1, cells, wide), corners) * np.sqrt(kept)
            low += weight * nuclear_below(seen.reshape(len(matrix), -1), ROUNDINGS_64)
    low = low * low / sum_bounds(kept.reshape(-1))[1]
    return precisions, t, max(low, 0.0) * BELOW_512


def _roots(lam: Floats, corners: Floats) -> tuple[Floats, Floats, float]:
    """S^(1/2) and S^(-1/2), one small matrix per cell, and a bound on their relative error squared."""
    moments = np.einsum("kc,cv,cw->kvw", lam, corners, corners)
    values, axes = np.linalg.eigh(moments)
    values = np.maximum(values, values[:, -1:] * _LEAST)
    root = np.einsum("kvr,kr,kwr->kvw", axes, np.sqrt(values), axes)
    inverse = np.einsum("kvr,kr,kwr->kvw", axes, 1 / np.sqrt(values), axes)
    condition = float((values[:, -1] / values[:, 0]).max())
    return root, inverse, 64 * UNIT * condition * corners.shape[1]


def _rows(matrix: Floats, small: Floats, wide: int) -> Floats:
    """The block-diagonal matrix of small ones, times a matrix."""
    cells = len(small)
    if wide == 1:
        return np.asarray(matrix * small[:, 0])
    return np.asarray(np.einsum("kvw,kwr->kvr", small, matrix.reshape(cells, wide, -1)).reshape(cells * wide, -1))


def _sandwich(shape: Floats, small: Floats, wide: int) -> Floats:
    turned = _rows(_rows(shape, small, wide).T, small, wide)
    return np.asarray((turned + turned.T) / 2)


def _trace_root(matrix: Floats) -> tuple[Floats, Floats]:
    """The roots of the eigenvalues, and the axes."""
    values, axes = np.linalg.eigh(matrix)
    return np.sqrt(np.maximum(values, 0.0)), axes


def _root_below(matrix: Floats, roots: Floats, axes: Floats) -> float:
    """A lower bound on tr T^(1/2): by Weyl each eigenvalue of T is within |T - U w U'| of one of U w U'."""
    values, size = np.square(roots), float(np.square(roots).max())
    defect = float(np.linalg.norm(axes.T @ axes - np.eye(len(axes)))) + 4 * UNIT * len(axes) ** 2
    error = float(np.linalg.norm((axes * values) @ axes.T - matrix)) + 3 * size * defect
    error += UNIT * (4 * len(axes) * math.sqrt(len(axes)) * size + 64 * float(np.linalg.norm(matrix)))
    return sum_bounds(np.sqrt(np.maximum(values - error, 0.0)), ROUNDINGS_64)[0]


def best_for_pairs(shape: Floats, corners: Floats, gap: float) -> tuple[list[Floats], float]:
    """Differences of any two cells, and of a cell and none: the engine for pairs, in the coordinates V^(1/2)."""
    roots, axes = _trace_root(shape)
    kept = roots > roots[-1] * 1e-7
    rows = axes[:, kept] * roots[kept]
    seen = np.kron(np.eye(len(shape) // corners.shape[1]), corners) @ rows
    points = Points(np.vstack([seen, np.zeros((1, rows.shape[1]))]), True)
    found = best_ellipsoid(points, np.ones(rows.shape[1]), gap=gap, rounds=ROUNDS)
    inverse = np.linalg.pinv(found.inverse, rcond=1e-12, hermitian=True)
    error = 64 * UNIT * len(shape) * float(np.linalg.norm(shape))  # of V^(1/2) squared against V
    reach = 2 * float(np.square(corners).sum(axis=1).max())
    low = max(math.sqrt(found.least) - math.sqrt(reach * len(shape) * error), 0.0)
    return [np.asarray(rows @ inverse @ rows.T)], low * low * BELOW_512


def mode_of(precision: Floats, widths: Floats) -> Mode:
    """Axes and scales of a precision; what no query asks about gets a little of it, in units of what a record moves."""
    units = np.tile(widths, len(precision) // widths.size)
    little = _QUIET * float((precision.diagonal() * np.square(units)).max())
    values, axes = np.linalg.eigh((precision + precision.T) / 2 + np.diag(little / np.square(units)))
    scales = 1 / np.sqrt(np.maximum(values, values[-1] * 2.0**-60))
    if len(scales) == 1:
        return Mode(frozen(scales))
    return Mode(frozen(scales), Rotation.near(axes.T))
