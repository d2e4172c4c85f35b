"""A loss of which only an upper curve is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8192
from shapedp.privacy.losses.base import Loss

_MOST = 512


@dataclass(frozen=True)
class StatedLoss(Loss):
    """Whatever meets (epsilon, curve(epsilon))-DP for every epsilon >= 0, in both directions.

    Guarantee: as good as the curve. A long list of epsilons is answered from 512 of them: the true profile is convex
    in e^epsilon, so it lies below the chords of any curve above it.
    """

    curve: Callable[[float], float] = field(repr=False)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        points, where = np.unique(epsilon, return_inverse=True)
        if points.size > _MOST:
            nodes = points[np.linspace(0, points.size - 1, _MOST).astype(np.int64)]
            upper = _chords(nodes, self._stated(nodes), points)
        else:
            upper = self._stated(points)
        values = upper[where].reshape(epsilon.shape)
        return np.zeros_like(values), values

    def _stated(self, epsilon: Floats) -> Floats:
        values = np.array([self.curve(e) for e in epsilon.tolist()], dtype=np.float64)
        return np.where(np.isnan(values), 1.0, np.clip(values, 0.0, 1.0))


def _chords(nodes: Floats, values: Floats, at: Floats) -> Floats:
    """Linear interpolation in e^epsilon, rounded up."""
    left = np.clip(np.searchsorted(nodes, at, side="right") - 1, 0, nodes.size - 2)
    start, width = nodes[left], nodes[left + 1] - nodes[left]
    share = np.exp(at - start - width) * np.expm1(start - at) / np.expm1(-width)
    share = np.clip(share, 0.0, 1.0)
    return np.minimum((values[left] * (1 - share) + values[left + 1] * share) * ABOVE_8192, 1.0)
