"""The lower end of a radial law's pure epsilon was the upper bound on it: above the truth, though by roundings only."""

from fractions import Fraction

import pytest

from shapedp.privacy.losses.radial import RadialLoss


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.3, 7.25])
def test_the_pure_epsilon_lies_in_its_bracket(ratio):
    found = RadialLoss(5, 5.0, 1.0, ratio).epsilon(0.0)
    assert Fraction(found.lower) <= Fraction(ratio) <= Fraction(found.upper)
    assert found.lower > ratio * (1 - 1e-14)
