"""Exact confidence bounds on a probability from a count."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shapedp.numerics.arrays import Floats

# A fixed schedule of looks: the share of the test samples seen, and of the error probability spent there.
LOOKS = (1 / 64, 1 / 16, 1 / 4, 1.0)
SPENDING = (0.02, 0.04, 0.14, 0.80)
LEVELS = np.concatenate([np.arange(1, 20) / 20, [0.99, 0.999]])  # at which the distribution audit counts


def lower_bound(hits: ArrayLike, n: int, alpha: float) -> Floats:
    """p with P(Binomial(n, p) >= hits) = alpha, 0 where there are no hits.

    Guarantee: exceeds the true probability with probability at most alpha.
    Reference: Clopper and Pearson 1934.
    """
    k = np.asarray(hits, dtype=np.float64)
    return np.where(k > 0, special.betaincinv(np.maximum(k, 1.0), n - k + 1, alpha), 0.0)


def upper_bound(hits: ArrayLike, n: int, alpha: float) -> Floats:
    """p with P(Binomial(n, p) <= hits) = alpha, 1 where all are hits.

    Guarantee: falls below the true probability with probability at most alpha.
    Reference: Clopper and Pearson 1934.
    """
    k = np.asarray(hits, dtype=np.float64)
    return np.where(k < n, special.betainccinv(k + 1, np.maximum(n - k, 1.0), alpha), 1.0)


def binomial_p_values(hits: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """Twice the smaller tail of Binomial(n, p) at `hits`, at most 1, entry by entry.

    Guarantee: each is at most a with probability at most a.
    """
    k, n, p = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (hits, n, p)))
    at_least = np.where(k > 0, special.betainc(np.maximum(k, 1.0), n - k + 1, p), 1.0)
    at_most = np.where(k < n, special.betaincc(k + 1, np.maximum(n - k, 1.0), p), 1.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(at_least, at_most)))


def cosine_level(dim: int, level: float) -> float:
    """x with P(|cos(angle to a fixed line)| <= x) = level for a uniform direction in R^dim, dim >= 2."""
    return float(np.sqrt(special.betaincinv(0.5, (dim - 1) / 2, level)))
