"""The sensitivity profiles of the i.n.i.d. noise paper, section V."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NAMES = ("uniform", "linear", "quadratic", "exponential", "one-hot")


def profile(name: str, dim: int, norm: int) -> Floats:
    """The named profile of K = dim coordinates, scaled so that its l_norm norm is 1."""
    i = np.arange(1.0, dim + 1)
    raw = {
        "uniform": np.ones(dim),
        "linear": i,
        "quadratic": i**2,
        "exponential": np.exp(i - dim),
        "one-hot": (i == dim).astype(np.float64),
    }[name]
    return np.asarray(raw / np.linalg.norm(raw, norm))


def decibel(value: float) -> float:
    """10 log10."""
    return float(10 * np.log10(value))
