"""Noise laws."""

from shapedp.noise.base import Law
from shapedp.noise.gaussian import Gaussian
from shapedp.noise.io import law_from_json
from shapedp.noise.laplace import DiscreteLaplace, Laplace
from shapedp.noise.mixed import Mixed
from shapedp.noise.radial import Radial
from shapedp.noise.staircase import L1Staircase, Staircase
from shapedp.noise.tensor import TensorGaussian

__all__ = [
    "DiscreteLaplace",
    "Gaussian",
    "L1Staircase",
    "Laplace",
    "Law",
    "Mixed",
    "Radial",
    "Staircase",
    "TensorGaussian",
    "law_from_json",
]
