"""How far a difference vector lies within a sensitivity set."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity, Slices

Floats = NDArray[np.float64]


@singledispatch
def gauge(sensitivity: Sensitivity, difference: Floats) -> float:
    """The least t with difference in t times the set: at most 1 inside, infinite where a fixed coordinate moves.

    A new set registers its own rule.
    """
    raise TypeError(f"no gauge is registered for the set {type(sensitivity).__name__}")


def _over(part: Floats, bound: Floats) -> Floats:
    """part/bound with 0/0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(part == 0, 0.0, np.divide(part, bound))


@gauge.register
def _(sensitivity: L2, difference: Floats) -> float:
    scales = np.ones(1) if sensitivity.scales is None else sensitivity.scales
    return float(np.linalg.norm(_over(np.ravel(difference), scales)) / sensitivity.radius)


@gauge.register
def _(sensitivity: L1, difference: Floats) -> float:
    return float(np.abs(difference).sum() / sensitivity.radius)


@gauge.register
def _(sensitivity: Box, difference: Floats) -> float:
    return float(_over(np.abs(np.ravel(difference)), sensitivity.profile).max())


@gauge.register
def _(sensitivity: Blocks, difference: Floats) -> float:
    norms = np.sqrt(np.add.reduceat(np.square(np.ravel(difference)), sensitivity.starts))
    return float(_over(norms, sensitivity.radii).max())


@gauge.register
def _(sensitivity: Slices, difference: Floats) -> float:
    norms = np.sqrt(np.square(difference).reshape(sensitivity.panels).sum(axis=(0, 2)))
    return float(_over(norms, sensitivity.radii).max())
