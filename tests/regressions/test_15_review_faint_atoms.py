"""A product of two tiny numbers underflowed: below delta 1e-161 the lower end of a loss on a grid lay above the truth.

The loss: N(5, 1) against N(0, 1), and with a probability w an output whose loss is x, between two nodes of the grid.
Then delta(x) is that of the normals alone: the rare output adds w (1 - e^(eps - x))_+.
"""

import mpmath as mp
import numpy as np
import pytest

from shapedp.accounting import compose
from shapedp.mechanisms import certify
from shapedp.privacy.losses import GaussianLoss, Loss
from shapedp.privacy.losses.discrete import bound_masses

STEP = 0.0107
NORMALS = GaussianLoss(5.0)


class Rare(Loss):
    """Normals, and a rare output: the normals are made rarer by w, which no float shows."""

    def __init__(self, share, place):
        super().__init__()
        self.place, self.rare = place, share * NORMALS.delta(place).upper / STEP

    def profile(self, epsilon, *, reverse=False):
        lower, upper = NORMALS.profile(epsilon, reverse=reverse)
        more = np.zeros_like(upper) if reverse else -self.rare * np.expm1(np.minimum(epsilon - self.place, 0.0))
        return (lower + more) * (1 - 1e-15), (upper + more) * (1 + 1e-15)


def truth(place):
    """delta of the normals at `place`, in 60 digits."""
    with mp.workdps(60):
        at = mp.mpf(place)
        return mp.ncdf(mp.mpf(2.5) - at / 5) - mp.exp(at) * mp.ncdf(-mp.mpf(2.5) - at / 5)


@pytest.mark.parametrize("share", [0.3, 3.0])
@pytest.mark.parametrize("node", [9345, 13738, 13831, 14018, 16822, 18411])
def test_lower_masses_stay_below_an_atom_between_nodes(share, node):
    place = (node + 0.375) * STEP
    lower, upper = bound_masses(Rare(share, place), STEP, -60, node + 1000, reverse=False)
    exact = truth(place)
    found, above = (one.hockey_stick(np.array([place]), upper=one is upper)[0] for one in (lower, upper))
    assert 0.5 * exact < found <= exact <= above


def test_a_true_claim_is_not_refuted():
    place = (14018 + 0.375) * STEP
    made, exact = Rare(3.0, place).discretize(step=STEP, tail=1e-290), truth(place)
    assert made.delta(place).lower <= exact <= made.delta(place).upper
    assert certify(made, epsilon=place, delta=float(exact * 1.05)).verdict == "undecided"


def test_compositions_stay_below_too():
    """A Gaussian loss of 1e-9 beside it adds less than a millionth."""
    place = (14018 + 0.375) * STEP
    whole = compose([Rare(3.0, place), GaussianLoss(1e-9)], accuracy=0.1, closed_forms=False)
    found, exact = whole.delta(place), truth(place)
    assert found.lower <= exact * (1 + 1e-6)
    assert exact <= found.upper
