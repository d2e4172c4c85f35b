"""Privacy losses."""

from shapedp.privacy.losses.adjusted import AdjustedLoss
from shapedp.privacy.losses.base import Loss
from shapedp.privacy.losses.gaussian import GaussianLoss

__all__ = ["AdjustedLoss", "GaussianLoss", "Loss"]
