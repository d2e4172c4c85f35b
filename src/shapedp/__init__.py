"""Differential privacy in high dimension: noise shaped to the query, with a guarantee you can check."""

from shapedp import audit, recipes
from shapedp._version import __version__
from shapedp.mechanisms import (
    Additive,
    Advice,
    DoesNotApplyError,
    Mechanism,
    Release,
    advise,
    calibrate,
    certify,
    verify,
)
from shapedp.noise import DiscreteLaplace, Gaussian, Laplace, Law, TensorGaussian
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
    "DiscreteLaplace",
    "DoesNotApplyError",
    "Gaussian",
    "GaussianLoss",
    "Laplace",
    "LaplaceLoss",
    "Law",
    "Loss",
    "Mechanism",
    "NotCertifiedError",
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
    "recipes",
    "verify",
]
