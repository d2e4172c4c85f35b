"""The Renyi curve of a sampled Gaussian took the upper bound on mu for mu itself: its lower end was false."""

import pytest

from shapedp.accounting import SubsampledLoss, compose
from shapedp.privacy import GaussianLoss


@pytest.mark.parametrize("least", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("alpha", [1.5, 2.0, 32.0])
def test_the_lower_end_is_that_of_the_least_mu(least, alpha):
    loss = SubsampledLoss(GaussianLoss(3.0, least), 0.5)
    at_most = SubsampledLoss(GaussianLoss(least), 0.5).renyi(alpha).upper
    assert loss.renyi(alpha).lower <= at_most
    assert loss.renyi(alpha).upper == SubsampledLoss(GaussianLoss(3.0), 0.5).renyi(alpha).upper
    assert compose([(loss, 3)]).renyi(alpha).lower <= 3 * at_most * (1 + 1e-12)


def test_nothing_is_lost_where_nothing_moves():
    assert SubsampledLoss(GaussianLoss(0.0), 0.5).renyi(2.0).upper == 0.0
