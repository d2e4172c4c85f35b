"""The privacy loss of staircase noise: pure differential privacy."""

from __future__ import annotations

import math

import numpy as np

from shapedp.noise.staircase import L1Staircase, Staircase
from shapedp.numerics import sum_bounds
from shapedp.privacy.losses.laplace import LaplaceLoss
from shapedp.privacy.losses.pairing import loss_of
from shapedp.sensitivity import Sensitivity


@loss_of.register(Staircase)
def _staircase(law: Staircase, sensitivity: Sensitivity) -> LaplaceLoss:
    """A coordinate that moves by s grid steps (one more for rounding the input) crosses ceil(s/width) levels at most.

    Each coordinate is bounded on its own: exact for a box, generous for other sets.
    """
    bounds = np.array([sensitivity.l1_reach(_only(law.dim, i))[1] for i in range(law.dim)])
    steps = np.ceil(bounds / law.grid * (1 + 2.0**-50)) + 1
    levels = np.where(bounds > 1e-300, np.ceil(steps / law.width), 0.0)
    return LaplaceLoss(sum_bounds(levels * law.epsilons, 2.0**-50)[1], continuous=False)


def _only(dim: int, i: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Scales under which only coordinate i counts."""
    scales = np.full(dim, np.inf)
    scales[i] = 1.0
    return scales


@loss_of.register(L1Staircase)
def _radial(law: L1Staircase, sensitivity: Sensitivity) -> LaplaceLoss:
    """|x + v|_1 <= |x|_1 + |v|_1: ceil(|v|_1/width) levels at most (widths equal to 2^-40 count as equal)."""
    reach = sensitivity.l1_reach(np.array([law.width]))[1]
    return LaplaceLoss(law.epsilon * math.ceil(reach * (1 - 2.0**-40)) * (1 + 2.0**-50), continuous=False)
