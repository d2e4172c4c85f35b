"""Exact confidence bounds on a probability from a count."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

# A fixed schedule of looks: the share of the test samples seen, and of the error probability spent there.
LOOKS = (1 / 64, 1 / 16, 1 / 4, 1.0)
SPENDING = (0.02, 0.04, 0.14, 0.80)


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


def binomial_p_value(hits: int, n: int, p: float) -> float:
    """Twice the smaller tail of Binomial(n, p) at `hits`, at most 1.

    Guarantee: at most a with probability at most a.
    """
    upper = float(special.betainc(hits, n - hits + 1, p)) if hits > 0 else 1.0
    lower = float(special.betaincc(hits + 1, n - hits, p)) if hits < n else 1.0
    return min(1.0, 2 * min(lower, upper))
