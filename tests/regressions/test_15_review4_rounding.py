"""What rounding may hide in tilted masses is as uncertain as the tilt: both together, not one beside the other."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shapedp import GaussianLoss
from shapedp.accounting.cumulants import Parts
from shapedp.accounting.fourier import Convolution, convolve
from shapedp.privacy.losses.discrete import bound_masses


def _view() -> Convolution:
    _, upper = bound_masses(GaussianLoss(0.5), 2.0**-8, -1600, 1600, reverse=False)
    parts: Parts = [(upper, 4)]
    return convolve(parts, 1.0, upper=True, tail=1e-12, node_limit=2**20)


def test_hidden_mass_is_enlarged_by_the_error_of_the_tilt() -> None:
    """Masses of which `rounding` is hidden, all e times too small: their delta is e times that of the sum."""
    view, at = _view(), np.array([1.0])
    hidden = 1e-3
    plain = replace(view, relative=0.0, rounding=(0.0, 0.0)).delta(at)[0]
    more = replace(view, relative=0.0, rounding=(hidden, hidden)).delta(at)[0]
    both = replace(view, relative=math.expm1(1.0), rounding=(hidden, hidden)).delta(at)[0]
    assert more > plain
    assert both >= more * math.e * (1 - 1e-9)
