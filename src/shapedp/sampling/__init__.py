"""Secure randomness and float-safe draws."""

from .discrete import discrete_laplace, exponential_coins, geometric
from .quantile import GAUSSIAN, LAPLACE, Quantile
from .rounding import grid_for, rounded_sum
from .sources import SecureSource, SimulatedSource, Source, source

__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "Quantile",
    "SecureSource",
    "SimulatedSource",
    "Source",
    "discrete_laplace",
    "exponential_coins",
    "geometric",
    "grid_for",
    "rounded_sum",
    "source",
]
