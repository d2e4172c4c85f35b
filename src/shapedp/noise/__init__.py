"""Noise laws: one file per law, with everything that the law knows. See `noise.base`."""

from shapedp.noise.base import FAMILIES, LAWS, Family, Law, law_from_json, registered
from shapedp.noise.discrete_laplace import DiscreteLaplace
from shapedp.noise.gaussian import Gaussian
from shapedp.noise.laplace import Laplace
from shapedp.noise.logistic import Logistic
from shapedp.noise.mixed import Mixed
from shapedp.noise.radial import Radial
from shapedp.noise.request import DoesNotApplyError, Request
from shapedp.noise.stack import Stack
from shapedp.noise.staircase import Staircase
from shapedp.noise.staircase_l1 import L1Staircase
from shapedp.noise.tensor import TensorGaussian

__all__ = [
    "FAMILIES",
    "LAWS",
    "DiscreteLaplace",
    "DoesNotApplyError",
    "Family",
    "Gaussian",
    "L1Staircase",
    "Laplace",
    "Law",
    "Logistic",
    "Mixed",
    "Radial",
    "Request",
    "Stack",
    "Staircase",
    "TensorGaussian",
    "law_from_json",
    "registered",
]
