"""Spherical noise with b < 1, just below its largest loss shift^b: rounding moved a cosine by more than 1, unnoticed.

There only a small ball about the centre loses more than epsilon, and two bounds need no integral: a loss of at least
(shift - r)^b - r^b within a radius r, and of at most (shift + r)^b - r^b at it.
"""

import mpmath as mp
import pytest

from shapedp.mechanisms import certify
from shapedp.privacy.losses.radial import RadialLoss

CASES = [
    (2, 0.7, 0.1787995260106354, 0.299679098934917),
    (4, 0.3, 0.6034039070909475, 0.8593744456779767),
    (5, 0.5, 175.63109830054506, 13.252588008025818),
    (14, 0.5, 587.2290092982057, 24.232807924568917),
    (16, 0.5430948139754483, 223.80996188895972, 18.888928471733603),
]


def simple_bounds(dim, b, shift, epsilon):
    """delta from below and from above, in 60 digits."""
    with mp.workdps(60):
        b, shift, epsilon = mp.mpf(b), mp.mpf(shift), mp.mpf(epsilon)
        room = shift**b - epsilon

        def within(r):
            return mp.gammainc(dim / b, 0, r**b, regularized=True)

        near = (room / 4) ** (1 / b)
        low = within(near) * -mp.expm1(epsilon - (shift - near) ** b + near**b)
        far = mp.findroot(lambda r: (shift + r) ** b - r**b - epsilon, (near, (2 * room) ** (1 / b)), solver="anderson")
        return low, within(far) * -mp.expm1(-room) * (1 + mp.mpf(10) ** -30)


@pytest.mark.parametrize(("dim", "b", "shift", "epsilon"), CASES)
def test_the_bracket_holds_delta_just_below_the_largest_loss(dim, b, shift, epsilon):
    low, high = simple_bounds(dim, b, shift, epsilon)
    found = RadialLoss(dim, float(dim), b, shift).delta(epsilon)
    assert 0 < low < high
    assert found.upper >= low
    assert found.lower <= high


def test_a_claim_below_the_truth_is_not_certified():
    dim, b, shift, epsilon = CASES[0]
    low, _ = simple_bounds(dim, b, shift, epsilon)
    loss = RadialLoss(dim, float(dim), b, shift)
    assert certify(loss, epsilon=epsilon, delta=float(low) / 2).verdict != "certified"
