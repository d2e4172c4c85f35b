"""Laplace noise on the coordinates that decide, Gaussian noise on the many that do not: the best split of a box."""

from __future__ import annotations

from functools import singledispatch

from shapedp.mechanisms.families.base import DoesNotApplyError, Family, Request, optimal_scales
from shapedp.mechanisms.families.tilted import least_error
from shapedp.noise import Laplace, Law
from shapedp.noise.mixed import Mixed
from shapedp.sensitivity import Box, Sensitivity


def _law(request: Request) -> Law:
    if request.delta == 0:
        raise DoesNotApplyError("mixed noise cannot meet delta = 0: use Laplace noise, or allow a delta > 0")
    return _shape(request.sensitivity, request)


@singledispatch
def _shape(sensitivity: Sensitivity, request: Request) -> Law:
    raise DoesNotApplyError(
        f"mixed noise serves boxes, where the corner is the worst, not the set {sensitivity.kind!r}"
    )


@_shape.register(Box)
def _box(sensitivity: Box, request: Request) -> Law:
    weights = request.root_weights() ** 2
    pure = optimal_scales(sensitivity.profile, weights, request.measure.power, 1, request.epsilon) * (1 + 2.0**-44)
    found = least_error(sensitivity, request, Laplace(pure), mixed=True)
    if not isinstance(found, Mixed) or found.gaussian.all():
        raise DoesNotApplyError("no mixture beats one kind of noise for all coordinates here: use laplace or gaussian")
    return found


def _why(request: Request, law: Law) -> str:
    assert isinstance(law, Mixed)
    crowd = int(law.gaussian.sum())
    few = law.dim - crowd
    decide = "1 coordinate decides and carries" if few == 1 else f"{few} coordinates decide and carry"
    return (
        f"{decide} Laplace noise, sharp at zero; the losses of the other {crowd} add up in squares under Gaussian noise"
    )


FAMILY = Family("mixed", _law, every_measure=True, why=_why)
