"""`epsilon` of a sum over coordinates searched a list of points, which are answered on other nodes than one point: at
the epsilon it gave, `delta` could exceed the delta asked for, and a claim made of the two was undecided."""

import numpy as np
import pytest

from shapedp import certify
from shapedp.privacy import LaplaceLoss
from shapedp.privacy.losses.logistic import LogisticLoss


@pytest.mark.parametrize("delta", [1e-12, 1e-2])
@pytest.mark.parametrize("kind", [LaplaceLoss, LogisticLoss])
def test_the_epsilon_found_is_certified(kind, delta):
    loss = kind(1.6, np.array([0.5, 0.3, 0.8]), worst=True)
    found = loss.epsilon(delta)
    assert certify(loss, epsilon=found.upper, delta=delta).verdict == "certified"
    assert found.lower <= found.upper < found.lower * (1 + 1e-6)
