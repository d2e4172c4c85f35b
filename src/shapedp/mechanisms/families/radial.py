"""The least-error spherical noise of an L2 ball."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from shapedp.mechanisms.families.base import DoesNotApplyError, Family, Request
from shapedp.noise.radial import Radial
from shapedp.numerics import SearchError
from shapedp.numerics.checks import positive
from shapedp.numerics.radius import RadiusRule
from shapedp.privacy.losses import GaussianLoss
from shapedp.privacy.losses.base import EPSILON_LIMIT
from shapedp.privacy.losses.radial import RadialLoss
from shapedp.sensitivity import L2, Sensitivity

Shape = tuple[float, float]
Progress = Callable[[int, Shape, float], None]
EVALUATIONS = 70
SECONDS = 300.0  # of the search; a few are usual
_UP = 1 + 2.0**-44


def _law(request: Request) -> Radial:
    radius = _radius(request.sensitivity)
    dim = request.sensitivity.dim
    if dim < 2:
        raise DoesNotApplyError("spherical noise needs dim >= 2: in one dimension use Laplace or Gaussian noise")
    if request.epsilon > EPSILON_LIMIT:
        raise DoesNotApplyError(f"spherical noise is computed for epsilon of at most {EPSILON_LIMIT:g}")
    shape = request.options.get("shape")
    if shape is None:
        shape = best_shape(dim, request.epsilon, request.delta, progress=request.options.get("progress"))
    a, b = (positive(name, value) for name, value in zip(("a", "b"), shape, strict=True))
    if a > dim:
        raise DoesNotApplyError(f"a = {a:g} exceeds dim = {dim}: the longest shift would not be the worst")
    law = Radial(dim, a, b, radius)
    for _ in range(4):  # the slip depends on the scale through its power of two only
        slip, missed = law.slip
        epsilon = request.epsilon - 2 * slip * (1 + 2.0**-40)
        if request.delta == 0:
            raise DoesNotApplyError("float releases of spherical noise carry a delta > 0: ask for delta = 1e-12, say")
        delta = (
            (request.delta - (1 + math.exp(min(request.epsilon, 700.0))) * missed) * math.exp(-slip) * (1 - 2.0**-40)
        )
        if not (epsilon > 0 and delta > 0):
            raise DoesNotApplyError("the claim is below what rounding in floats allows in this dimension")
        ratio = RadialLoss.calibrate(dim, a, b, epsilon, delta).ratio
        following = Radial(dim, a, b, radius / ratio * _UP)
        if following.slip == (slip, missed):
            return following
        law = following
    return Radial(dim, a, b, law.scale * (1 + 1e-4))


@singledispatch
def _radius(sensitivity: Sensitivity) -> float:
    raise DoesNotApplyError(f"spherical noise serves an L2 ball, not the set {sensitivity.kind!r}")


@_radius.register(L2)
def _ball(sensitivity: L2) -> float:
    if sensitivity.scales is not None:
        raise DoesNotApplyError("spherical noise serves a ball, not an ellipsoid: use Gaussian noise")
    return sensitivity.radius


def best_shape(dim: int, epsilon: float, delta: float, *, progress: Progress | None = None) -> Shape:
    """(a, b) of the generalised gamma law with the least E R^2 that meets (epsilon, delta).

    A simplex search over sqrt(dim - a) and log b, started at exp(-r) and at the Gaussian. Nothing it finds is
    trusted: the law is calibrated and certified afterwards.
    """
    from scipy import optimize

    if delta == 0:
        return float(dim), 1.0
    mu, deadline = GaussianLoss.calibrate(epsilon, delta).mu, time.monotonic() + SECONDS
    best: tuple[float, Shape] = (0.0, (float(dim), 2.0))  # log of E R^2 over the Gaussian's
    last: float | None = None
    done = 0

    def cost(point: NDArray[np.float64]) -> float:
        nonlocal best, last, done
        if time.monotonic() > deadline:
            raise DoesNotApplyError(f"no best shape was found within {SECONDS:g} s: fix one with shape=(a, b)")
        a, b = dim - min(float(point[0]) ** 2, 0.95 * dim), math.exp(min(max(float(point[1]), -2.0), 2.5))
        try:
            last = RadialLoss.approximate(dim, a, b, epsilon, delta, start=last, gap=3e-5, tolerance=3e-6)
        except SearchError:
            return 50.0
        value = 2 / b * math.log(a / b) + math.log1p(RadiusRule(a, b).mean_excess(2.0))
        value += 2 * math.log(mu / last) - math.log(dim)
        best = min(best, (value, (a, b)))
        done += 1
        if progress is not None:
            progress(done, best[1], math.exp(best[0]))
        return value

    root = 0.1 * math.sqrt(dim)
    simplex = np.array([[root, 0.2], [3 * root, 0.25], [root, 0.5]])
    optimize.minimize(
        cost,
        simplex[0],
        method="Nelder-Mead",
        options={"xatol": 2e-3, "fatol": 1e-5, "initial_simplex": simplex, "maxfev": EVALUATIONS},
    )
    return best[1]


FAMILY = Family("radial", _law, ("shape", "progress"))
