"""Privacy losses."""

from importlib import import_module
from types import ModuleType

from shapedp.privacy.losses.adjusted import AdjustedLoss
from shapedp.privacy.losses.base import Loss, loss_of
from shapedp.privacy.losses.gaussian import GaussianLoss, largest_mus
from shapedp.privacy.losses.laplace import LaplaceLoss
from shapedp.privacy.losses.mixed import MixedLoss
from shapedp.privacy.losses.mixing import MixingLoss
from shapedp.privacy.losses.radial import RadialLoss

__all__ = [
    "AdjustedLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "Loss",
    "MixedLoss",
    "MixingLoss",
    "RadialLoss",
    "largest_mus",
    "loss_of",
]


def __getattr__(name: str) -> ModuleType:
    """The modules that went to `noise`, under their old names for one version."""
    if name in ("staircase", "tensor"):
        return import_module(f"shapedp.privacy.losses.{name}")
    raise AttributeError(f"module 'shapedp.privacy.losses' has no attribute {name!r}")
