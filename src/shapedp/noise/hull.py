"""Gaussian noise for a hull: the covariance of least error among all, found by `numerics.ellipsoid`."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from shapedp.noise.base import Law
from shapedp.noise.gaussian import Gaussian, largest_mu, shape_of
from shapedp.noise.laplace import pure_scales
from shapedp.noise.request import DoesNotApplyError, Request
from shapedp.noise.rotation import Mode, Rotation
from shapedp.noise.tensor import TensorGaussian
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import positive
from shapedp.numerics.ellipsoid import Ellipsoid, Points, best_ellipsoid
from shapedp.numerics.outward import ABOVE_512, ABOVE_WIDE
from shapedp.privacy import Bracket
from shapedp.privacy.losses import GaussianLoss
from shapedp.sensitivity import Hull

GAP = 1e-4
_ROUNDS = 20_000
_PURE_ROUNDS = 500
_MOST_PURE = 1 << 24
_STRAIGHT = 1e-9  # correlations below it are left out
_FLAT = 1e-12  # variances below this share of the largest belong to directions that nobody moves
_TURN = 2.0**-25  # what an entry of a rotation is rounded by
_KNOWN: WeakKeyDictionary[Hull, dict[tuple[str, float, bytes], Ellipsoid]] = WeakKeyDictionary()


def ellipsoid_of(hull: Hull, request: Request) -> Ellipsoid:
    """The best ellipsoid around the coordinates that move, for the error asked for; remembered with the hull."""
    measure, wanted = request.measure, positive("gap", request.options.get("gap", GAP))
    if measure.power != 2 and not measure.maximum:
        raise DoesNotApplyError("Gaussian noise on a hull is shaped for the errors 'squared' and 'max' only")
    weights = np.broadcast_to(request.plain_weights(), hull.dim)
    known = _KNOWN.setdefault(hull, {})
    key = (measure.name, wanted, np.ascontiguousarray(weights).tobytes())
    if key not in known:
        moving = ~hull.fixed()
        points = Points(hull.dense()[:, moving], hull.differences)
        # a quarter is left for the rounding of the rotation and of its input
        known[key] = best_ellipsoid(points, weights[moving], worst=measure.maximum, gap=0.75 * wanted, rounds=_ROUNDS)
    return known[key]


@shape_of.register(Hull)
def _hull(sensitivity: Hull, mu: float, request: Request) -> Law:
    """X^-1 of the best ellipsoid; as independent coordinates where it has none but its own axes."""
    usual_mu(request)
    inverse = ellipsoid_of(sensitivity, request).inverse
    moving = ~sensitivity.fixed()
    deviations = np.sqrt(inverse.diagonal())
    related = np.abs(inverse / np.outer(deviations, deviations) - np.eye(len(inverse)))
    if related.max() < _STRAIGHT:
        scales = np.zeros(sensitivity.dim)
        scales[moving] = deviations
        return Gaussian(scales * (sensitivity.l2_reach(scales)[1] / mu * ABOVE_512))
    law = TensorGaussian([_mode(sensitivity, inverse, moving)])
    return law.within(sensitivity, mu)


def _mode(hull: Hull, inverse: Floats, moving: NDArray[np.bool_]) -> Mode:
    """The axes and scales of X^-1; coordinates that nobody moves keep their own axis, without noise.

    A direction that nobody moves, but that is no coordinate, gets noise so small that it hardly counts, and so large
    that what the rounded rotation moves there hardly counts: eta^4 = 2^-50 |v|^2 tr(X^-1)/3.
    """
    values, axes = np.linalg.eigh(inverse)
    flat = values < values[-1] * _FLAT
    longest = float(np.square(hull.extreme()).sum())
    values = np.where(flat, _TURN * math.sqrt(longest * float(values.sum()) / 3), values)
    scales, turn = np.zeros(hull.dim), np.eye(hull.dim)
    scales[moving] = np.sqrt(values)
    turn[np.ix_(moving, moving)] = axes.T
    return Mode(frozen(scales), Rotation.near(turn))


@pure_scales.register(Hull)
def _pure(sensitivity: Hull, request: Request) -> Floats:
    """Scales of least error with sum |v_i|/b_i <= epsilon at every vertex: b_i^(p + 1) ~ c_i/w_i, c = sum lam_k |v_k|.

    The weights lam of the vertices are those of a fixed point; for the worst coordinate b_i^2 ~ 1/w_i.
    """
    power, weights = request.measure.power, np.broadcast_to(request.plain_weights(), sensitivity.dim)
    if sensitivity.count ** (1 + sensitivity.differences) * sensitivity.dim > _MOST_PURE:
        raise DoesNotApplyError("pure noise is shaped to hulls of at most 2^24 entries, those of differences included")
    rows = sensitivity.dense()
    if sensitivity.differences:
        rows = np.concatenate([rows[k + 1 :] - rows[k] for k in range(len(rows) - 1)])
    rows = np.abs(rows)
    lam, moving = np.full(len(rows), 1 / len(rows)), ~sensitivity.fixed()
    scales = np.where(moving, 1 / np.sqrt(weights), 0.0)
    for _ in range(0 if request.measure.maximum else _PURE_ROUNDS):
        scales = np.where(moving, (lam @ rows / weights) ** (1 / (power + 1)), 0.0)
        forms = rows[:, moving] @ (1 / scales[moving])
        lam = np.maximum(lam * forms / float(lam @ forms), 1e-9 / len(lam))
        lam /= lam.sum()
    return np.asarray(scales * (sensitivity.l1_reach(scales)[1] / request.epsilon * ABOVE_512))


def optimality(law: Law, request: Request) -> Bracket | None:
    """A bracket of the law's error over the least that any Gaussian noise with the same claim can have.

    Guarantee: both ends are proved; the lower one is 1. None where the set is no hull.
    """
    hull = request.sensitivity
    if not isinstance(hull, Hull):
        return None
    top = beyond(request)
    error = law.expected_error(request.error, request.weights)
    return Bracket(1.0, max(error * top * top / ellipsoid_of(hull, request).least * ABOVE_WIDE, 1.0))


def beyond(request: Request) -> float:
    """A mu for which no Gaussian noise meets the claim; infinite where none is found."""
    mu = largest_mu(request)
    for bits in range(40, 0, -4):
        far = mu * (1 + 2.0**-bits)
        if GaussianLoss(far).delta(request.epsilon).lower > request.delta:
            return far
    return math.inf


def usual_mu(request: Request) -> float:
    """`largest_mu`, refused where noise for it would leave the range of floats."""
    mu = largest_mu(request)
    if not 1e-100 < mu < 1e100:
        raise DoesNotApplyError(
            f"epsilon {request.epsilon:g} is beyond what noise can be computed for: claim a usual one"
        )
    return mu
