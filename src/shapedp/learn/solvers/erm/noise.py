"""Noise for a vector of weights of known L2 sensitivity, by name."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from shapedp._papers import published
from shapedp.mechanisms import Additive, calibrate
from shapedp.mechanisms.families.base import DoesNotApplyError
from shapedp.mechanisms.families.radial import best_shape
from shapedp.sensitivity import L2, Adjacency

CERTIFIED = ("gaussian", "radial")
PUBLISHED = ("classic-gaussian", "analytic-gaussian", "multivariate-laplace", "product-noise", "r1smg")
NOISES = ("auto", *CERTIFIED, *PUBLISHED)
SEARCHED = 100  # weights up to which the best radial law saves enough to be worth its search


def chosen(noise: str, dim: int) -> str:
    """The noise that "auto" stands for: the best radial law in few dimensions, where it saves most."""
    if noise == "auto":
        return "radial" if 2 <= dim <= SEARCHED else "gaussian"
    return noise


@lru_cache(maxsize=512)
def additive(
    noise: str, radius: float, dim: int, epsilon: float, delta: float, adjacency: Adjacency | None = None
) -> Additive:
    """The mechanism that adds the noise named to `dim` weights, one record moving them by at most `radius`.

    "gaussian" and "radial" are exactly calibrated; a Gaussian is a radial law too, and the one to take where rounding
    in floats costs the others more than they save. The rest are published recipes, worth what their certificate says.
    """
    noise = chosen(noise, dim)
    ball = L2(radius, dim=dim, adjacency=adjacency)
    if noise in CERTIFIED:
        gaussian = calibrate("gaussian", ball, epsilon=epsilon, delta=delta)
        if noise == "gaussian" or dim == 1:
            return gaussian
        try:
            radial = calibrate("radial", ball, epsilon=epsilon, delta=delta, shape=_shape(dim, epsilon, delta))
        except DoesNotApplyError:
            return gaussian
        return min(radial, gaussian, key=lambda made: made.expected_squared_error)
    made: Additive = published("recipe", noise)(dim=dim, sensitivity=radius, epsilon=epsilon, delta=delta)
    return replace(made, sensitivity=ball)


_shape = lru_cache(maxsize=512)(best_shape)
