"""The radial bracket holds the theory's two integrals in 40 digits; experiments/trust/radial_scan.py has more cases."""

from __future__ import annotations

import pytest
from tests.reference.radial_line import exact_delta

from shapedp.privacy.losses.gaussian import GaussianLoss
from shapedp.privacy.losses.radial import RadialLoss

CASES = (  # dim, a, b, ratio, epsilon
    (3152, 3152.0, 2.0, 41.86, 1752.3),
    (3436, 3000.0, 2.0, 34.2, 1313.3),
    (5, 5.0, 2.0, 0.03276, 1.7132),  # delta 3e-302
    (4, 2.50763, 2.0, 11.62, 264.82),
    (62734, 28811.8, 1.282, 12.07, 35.827),  # delta 1e-185
    (1406, 786.085, 2.331, 3.647, 396.29),  # delta 3e-265
    (961180, 3174.57, 0.3446, 1.297e9, 0.0),
    (424, 424.0, 2.631, 3.393, 164.78),
    (2, 0.02, 2.0, 0.3, 2.0),
)


@pytest.mark.parametrize("case", CASES)
def test_the_bracket_holds_the_truth(case):
    truth, unsure = exact_delta(*case)
    assert truth > 0
    bracket = RadialLoss(*case[:4]).delta(case[4])
    assert bracket.lower <= truth + unsure
    assert truth - unsure <= bracket.upper


def test_the_reference_is_right_where_the_answer_is_known():
    """b = 2, a = dim is Gaussian: the reference shares nothing with that loss."""
    truth, unsure = exact_delta(50, 50.0, 2.0, 0.7, 1.3)
    known = GaussianLoss(0.7 * 2**0.5).delta(1.3)
    assert known.lower * (1 - 1e-12) <= truth + unsure
    assert truth - unsure <= known.upper * (1 + 1e-12)
    assert unsure < 1e-9 * truth
