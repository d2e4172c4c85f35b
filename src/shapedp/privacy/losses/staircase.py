"""The privacy loss of staircase noise: pure differential privacy."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from shapedp.noise.staircase import L1Staircase, Staircase
from shapedp.numerics import sum_bounds
from shapedp.privacy.losses.base import Floats
from shapedp.privacy.losses.laplace import LaplaceLoss
from shapedp.privacy.losses.pairing import loss_of
from shapedp.sensitivity import Box, Sensitivity


@loss_of.register(Staircase)
def _staircase(law: Staircase, sensitivity: Sensitivity) -> LaplaceLoss:
    """A coordinate that moves by s grid steps (one more if the input is rounded) crosses ceil(s/width) levels at most.

    Each coordinate is bounded on its own: exact for a box, generous for other sets.
    """
    if sensitivity.unrounded(law.grid):
        steps = np.floor(_bounds(sensitivity) * (1 + 2.0**-50)) / law.grid
    else:
        steps = np.ceil(_bounds(sensitivity) / law.grid * (1 + 2.0**-50)) + 1
    levels = np.where(sensitivity.fixed(), 0.0, np.ceil(steps / law.width))
    return LaplaceLoss(sum_bounds(levels * law.epsilons, 2.0**-50)[1], continuous=False)


@singledispatch
def _bounds(sensitivity: Sensitivity) -> Floats:
    """The largest |v_i| of each coordinate over the set."""
    only = np.where(np.eye(sensitivity.dim, dtype=np.bool_), 1.0, np.inf)
    return np.array([sensitivity.l1_reach(scales)[1] for scales in only])


@_bounds.register(Box)
def _profile(sensitivity: Box) -> Floats:
    return sensitivity.profile


@loss_of.register(L1Staircase)
def _radial(law: L1Staircase, sensitivity: Sensitivity) -> LaplaceLoss:
    """|x + v|_1 <= |x|_1 + |v|_1: ceil(|v|_1/width) levels at most."""
    reach = sensitivity.l1_reach(np.array([law.width]))[1]
    return LaplaceLoss(law.epsilon * math.ceil(reach) * (1 + 2.0**-50), continuous=False)
