"""An epsilon that rounding put just above a node of the grid counted as beyond the window: the upper end was 0."""

import math

import numpy as np
import pytest

from shapedp.accounting import BareLoss, compose
from shapedp.accounting.fourier import convolve
from shapedp.mechanisms import Additive, certify
from shapedp.noise import DiscreteLaplace
from shapedp.privacy.losses.masses import Masses
from shapedp.sensitivity import L1


@pytest.mark.parametrize("step", [0.1, 0.3, 1 / 7, 2.0**-10])
def test_no_upper_end_falls_at_an_epsilon_beside_a_node(step):
    view = convolve([(Masses(step, -8, np.full(17, 1 / 17)), 2)], 1.0, upper=True, tail=1e-9, node_limit=2**20)
    for node in range(1, 15):
        near = [node * step * (1 - 2.0**-50)]
        while len(near) < 40:
            near.append(math.nextafter(near[-1], math.inf))
        found, after = view.delta(np.array(near)), view.delta(np.array([near[-1] + step / 50]))[0]
        assert found.min() >= after, (node, found)


def test_a_stated_guarantee_is_not_certified_for_nothing():
    """No lower bound is known of such parts, so that nothing else would have caught it."""
    parts = compose([(BareLoss(0.5, 0.0, attained=False), 3)])
    assert certify(parts, epsilon=0.9991434820513614, delta=1e-9).verdict != "certified"
    assert parts.delta(0.9991434820513614).upper > 0.9 * (1 + math.exp(-0.5)) ** -3 * -math.expm1(-0.5)


def test_two_releases_of_geometric_noise_at_a_quarter():
    """The grid of this composition has a node 8 roundings below 1/4."""
    mechanism = Additive(DiscreteLaplace(7, 1.0, 2), L1(1.0, dim=2).of_integers(), 1.0, 0.0)
    q = math.exp(-1 / 7)
    losses = {2: 1 / (1 + q) ** 2, 0: 2 * q / (1 + q) ** 2}
    truth = losses[2] * -math.expm1(0.25 - 2 / 7)
    found = compose([(mechanism, 2)]).delta(0.25)
    assert found.lower <= truth <= found.upper < 0.02
