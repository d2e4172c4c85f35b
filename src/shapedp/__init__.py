"""Differential privacy in high dimension: noise shaped to the query, with a guarantee you can check."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from shapedp import _moved, recipes
from shapedp._version import __version__
from shapedp.accounting import ComposedLoss, Plan, compose, plan, subsample
from shapedp.mechanisms import (
    Additive,
    Advice,
    DoesNotApplyError,
    Mechanism,
    Mixing,
    Release,
    advise,
    calibrate,
    certify,
    verify,
)
from shapedp.noise import DiscreteLaplace, Gaussian, Laplace, Law, Radial, TensorGaussian
from shapedp.privacy import (
    Bracket,
    Certificate,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    NotCertifiedError,
    RefutedError,
    UndecidedError,
)
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity, Slices

__all__ = [
    "L1",
    "L2",
    "Additive",
    "Advice",
    "Blocks",
    "Box",
    "Bracket",
    "Certificate",
    "ComposedLoss",
    "DiscreteLaplace",
    "DoesNotApplyError",
    "Gaussian",
    "GaussianLoss",
    "Laplace",
    "LaplaceLoss",
    "Law",
    "Loss",
    "Mechanism",
    "Mixing",
    "NotCertifiedError",
    "Plan",
    "Radial",
    "RefutedError",
    "Release",
    "Sensitivity",
    "Slices",
    "TensorGaussian",
    "UndecidedError",
    "__version__",
    "advise",
    "audit",
    "calibrate",
    "certify",
    "compose",
    "plan",
    "recipes",
    "subsample",
    "verify",
]

# Subpackages that `import shapedp` does not load.
_LATER = ("audit", "claims", "datasets", "learn", "ledger", "report", "scale", "torch")

_moved.install()

if TYPE_CHECKING:
    from shapedp import audit


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return import_module(f"shapedp.{name}")
    raise AttributeError(f"module 'shapedp' has no attribute {name!r}")
