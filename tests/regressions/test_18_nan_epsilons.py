"""A NaN for epsilon is refused by every loss: Laplace noise answered it with delta = 0, as if all were private."""

import math

import numpy as np
import pytest

import shapedp as sdp
from shapedp.privacy.losses import Loss, MixedLoss, MixingLoss, RadialLoss

LOSSES = [
    sdp.GaussianLoss(0.5),
    sdp.LaplaceLoss(1.0),
    sdp.LaplaceLoss(1.0).shift(0.1),
    MixedLoss([0.5], 0.3),
    MixingLoss(20, 0.1),
    RadialLoss(3, 3.0, 1.0, 0.5),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("reverse", [False, True])
def test_no_loss_answers_nan(loss: Loss, reverse: bool) -> None:
    with pytest.raises(ValueError, match="NaN"):
        loss.profile(np.array([0.5, math.nan]), reverse=reverse)
    with pytest.raises(ValueError, match="NaN"):
        loss.hockey_stick(np.array([math.nan]), reverse=reverse)
