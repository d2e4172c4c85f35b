"""Differential privacy in high dimension: noise shaped to the query, with a guarantee you can check."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from shapedp import _moved
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

# What `import shapedp` does not load, and where it is.
_LATER = {name: f"shapedp.{name}" for name in ("audit", "learn", "ledger", "report", "scale", "torch")} | {
    "claims": "shapedp.papers.register",
    "datasets": "shapedp.papers.datasets",
    "recipes": "shapedp.papers.recipes",
}

_moved.install()

if TYPE_CHECKING:
    from shapedp import audit
    from shapedp.papers import recipes


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return import_module(_LATER[name])
    raise AttributeError(f"module 'shapedp' has no attribute {name!r}")
