"""Lower ends of passes: points of masses below the normal range lifted all points after them.

The mean of a cell whose mass is subnormal is rounded by up to its own size; kept in order by a running maximum, it
moved the cells above it. A pass of 301 randomised responses of 0.0447 had delta(0) >= 0.00102756 for 0.00102687: a
true claim was refuted. The truth is a sum of binomial probabilities.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, allocate


def exact(epsilon: float, steps: int, at: float, *, reverse: bool) -> mp.mpf:
    """H at `at` of a pass of randomised responses, in one direction."""
    with mp.workdps(50):
        up, chance = mp.e ** mp.mpf(epsilon), 1 / (1 + mp.e ** mp.mpf(epsilon))
        k, total, weight = mp.e ** mp.mpf(at), mp.mpf(0), (1 - chance) ** steps
        for j in range(steps + 1):
            mean = (j * up + (steps - j) / up) / steps
            total += weight * max(1 - k * mean if reverse else mean - k, 0)
            weight *= mp.mpf(steps - j) / (j + 1) * chance / (1 - chance)
        return total


@pytest.mark.parametrize(
    ("epsilon", "steps"),
    [(0.04465451959019284, 301), (0.006427839083010878, 1000), (0.004377983709595921, 1000), (0.01, 301), (0.05, 37)],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_brackets_of_passes_of_randomised_response(epsilon: float, steps: int, reverse: bool) -> None:
    loss = allocate(BareLoss(epsilon), steps, adjacency="add-remove")
    for share in (0.0, 0.03, 0.1, 0.4):
        lower, upper = (float(end[0]) for end in loss.profile(np.array([share * epsilon]), reverse=reverse))
        assert lower <= exact(epsilon, steps, share * epsilon, reverse=reverse) <= upper


def test_a_true_claim_is_not_refuted() -> None:
    epsilon, steps = 0.04465451959019284, 301
    truth = float(max(exact(epsilon, steps, 0.0020281651351101446, reverse=side) for side in (False, True)))
    loss = allocate(BareLoss(epsilon), steps, adjacency="add-remove")
    found = sdp.certify(loss, epsilon=0.0020281651351101446, delta=1.001 * truth)
    assert found.verdict != "refuted"
