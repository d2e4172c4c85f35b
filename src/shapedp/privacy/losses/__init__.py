"""Privacy losses."""

from shapedp.privacy.losses import stack, staircase, tensor
from shapedp.privacy.losses.adjusted import AdjustedLoss
from shapedp.privacy.losses.base import Loss
from shapedp.privacy.losses.gaussian import GaussianLoss
from shapedp.privacy.losses.laplace import LaplaceLoss
from shapedp.privacy.losses.mixed import MixedLoss
from shapedp.privacy.losses.mixing import MixingLoss
from shapedp.privacy.losses.pairing import loss_of
from shapedp.privacy.losses.radial import RadialLoss

__all__ = [
    "AdjustedLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "Loss",
    "MixedLoss",
    "MixingLoss",
    "RadialLoss",
    "loss_of",
    "stack",
    "staircase",
    "tensor",
]
