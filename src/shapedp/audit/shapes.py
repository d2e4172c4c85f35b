"""Levels of probability at which the distribution audit counts."""

from __future__ import annotations

import numpy as np
from scipy import special

LEVELS = np.concatenate([np.arange(1, 20) / 20, [0.99, 0.999]])


def cosine_level(dim: int, level: float) -> float:
    """x with P(|cos(angle to a fixed line)| <= x) = level for a uniform direction in R^dim, dim >= 2."""
    return float(np.sqrt(special.betaincinv(0.5, (dim - 1) / 2, level)))
