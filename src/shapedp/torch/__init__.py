"""Private deep learning: clips, noise and certified accounting for PyTorch."""

from shapedp.torch.accountant import Account, BudgetError
from shapedp.torch.attacks import CanaryResult, canary
from shapedp.torch.clips import Adaptive, Auto, Clip, Flat, NormClip, PerLayer, PerValue
from shapedp.torch.engine import PrivacyEngine
from shapedp.torch.geodp import AngleWindows
from shapedp.torch.layout import Layout
from shapedp.torch.noise import GaussianNoise, LaplaceNoise, Noise, RadialNoise, TensorNoise
from shapedp.torch.opacus_names import BatchMemoryManager, from_opacus
from shapedp.torch.plan import TrainingPlan
from shapedp.torch.private import attach, make_private
from shapedp.torch.published import Published
from shapedp.torch.published import __getattr__ as __getattr__  # the papers' own noise, loaded when asked for
from shapedp.torch.recorder import RecordError
from shapedp.torch.training import Progress, Training

__all__ = [
    "Account",
    "Adaptive",
    "AngleWindows",
    "Auto",
    "BatchMemoryManager",
    "BudgetError",
    "CanaryResult",
    "Clip",
    "Flat",
    "GaussianNoise",
    "LaplaceNoise",
    "Layout",
    "Noise",
    "NormClip",
    "PerLayer",
    "PerValue",
    "PrivacyEngine",
    "Progress",
    "Published",
    "PublishedGeoDP",
    "PublishedProductNoise",
    "PublishedTensorNoise",
    "RadialNoise",
    "RecordError",
    "TensorNoise",
    "Training",
    "TrainingPlan",
    "attach",
    "canary",
    "from_opacus",
    "make_private",
]
