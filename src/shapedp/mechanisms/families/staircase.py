"""Staircase noise per coordinate of a box: pure differential privacy, never worse than Laplace noise."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from shapedp.mechanisms.families.base import DoesNotApplyError, Family, Request, optimal_scales
from shapedp.noise import Law
from shapedp.noise.staircase import UNITS, Staircase, best_gamma
from shapedp.sensitivity import L1, Box, Sensitivity

_STEPS_BITS = 24
_LARGEST = 4096
_MOST = 2.0**20  # epsilons are counted in units of 2^-30 that must add up exactly


def _law(request: Request) -> Law:
    if request.measure.maximum:
        raise DoesNotApplyError("staircase noise minimises sums of |n|^p, not the worst coordinate")
    return _shape(request.sensitivity, request)


@singledispatch
def _shape(sensitivity: Sensitivity, request: Request) -> Law:
    raise DoesNotApplyError(f"staircase noise serves boxes, coordinate by coordinate, not the set {sensitivity.kind!r}")


@_shape.register(L1)
def _cross(sensitivity: L1, request: Request) -> Law:
    if sensitivity.dim > 1:
        raise DoesNotApplyError("staircase noise on an L1 ball has no float-safe sampler beyond one coordinate")
    return _box(Box([sensitivity.radius]), request)


@_shape.register(Box)
def _box(sensitivity: Box, request: Request) -> Law:
    """epsilon is split as the Laplace mechanism's optimum splits it; each coordinate then takes its best steps."""
    bounds = sensitivity.profile
    if (bounds == 0).any() or bounds.size > _LARGEST:
        raise DoesNotApplyError(f"staircase noise needs at most {_LARGEST} coordinates, each of sensitivity > 0")
    power = request.measure.power
    split = bounds / optimal_scales(bounds, request.root_weights() ** 2, power, 1, request.epsilon)
    if not split.max() <= _MOST:
        raise DoesNotApplyError(f"epsilon is too large for staircase noise: at most {_MOST:g} per coordinate")
    units = np.floor(split * UNITS * (1 - 2.0**-40))
    if units.min() < 2**10:
        raise DoesNotApplyError("epsilon is too small for staircase noise: use laplace noise")
    grid = np.ldexp(1.0, np.frexp(bounds)[1] - _STEPS_BITS)
    width = np.ceil(bounds / grid * (1 + 2.0**-50)) + 1
    table = {u: best_gamma(1, u / UNITS, power) for u in set(units.tolist())}
    fractions = np.array([table[u] for u in units.tolist()])
    inner = np.clip(np.rint(fractions * width), 1, width)
    while math.fsum(units) / UNITS > request.epsilon * (1 - 2.0**-49):
        units = units - 1
    return Staircase(width, inner, units, grid)


def _why(request: Request, law: Law) -> str:
    return "each coordinate spends enough epsilon that steps as wide as its bound beat an exponential decay"


FAMILY = Family("staircase", _law, every_measure=True, why=_why)
