"""The ridge that follows a noisy release of [A, b] = [X^T X, X^T y], chosen by an unbiased estimate of its risk."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEPS = 200


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """A + E and b + e: E isometric (variance s_A^2 on the diagonal, half of it elsewhere), e of variance s_b^2 I."""

    design: Floats
    cross: Floats
    design_scale: float
    cross_scale: float

    @property
    def edge(self) -> float:
        """The spectral norm of E, about s_A sqrt(2 d)."""
        return self.design_scale * math.sqrt(2 * len(self.cross))


def best_ridge(noisy: NoisyMoments) -> tuple[Floats, float]:
    """theta = (A + E + r I)^-1 (b + e) with the ridge r of least estimated risk, and r.

    With M = (A + E + r I)^-1, Stein's identity makes

        theta^T (A + E) theta - 2 (b + e)^T theta + s_A^2 (tr M |theta|^2 + theta^T M theta) + 2 s_b^2 tr M

    an unbiased estimate of theta^T A theta - 2 b^T theta = |y - X theta|^2 - |y|^2. It reads what was released.
    Reference: Stein 1981, for symmetric matrices with sum_B B M B = (tr M I + M)/2 over an orthonormal basis.
    """
    values, vectors = np.linalg.eigh(noisy.design)
    beta = vectors.T @ noisy.cross
    edge = noisy.edge
    start = max(-float(values[0]), 0.0)
    ridges = start + edge * np.geomspace(2.0**-6, 2.0**10, STEPS)
    if values[0] > edge:
        ridges = np.concatenate([[0.0], ridges])
    inverse = 1 / (values + ridges[:, None])
    theta = beta * inverse
    square, trace = np.square(theta), inverse.sum(1)
    risk = (square * values).sum(1) - 2 * (theta * beta).sum(1)
    risk += noisy.design_scale**2 * (trace * square.sum(1) + (square * inverse).sum(1))
    risk += 2 * noisy.cross_scale**2 * trace
    best = int(np.argmin(risk))
    return vectors @ theta[best], float(ridges[best])
