"""Where the losses of a composition lie: estimates that say where to look and certify nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shapedp.accounting.cumulants import MOST_TILT, Parts, saddle, total_cumulant
from shapedp.numerics.arrays import Floats

_MOST_RUNGS = 120
STEEP = 20.0  # e^20 roundings are still few


@dataclass(frozen=True, eq=False)
class Ladder:
    """Where the losses of a composition lie at a ladder of tilts: means, deviations, log delta at the mean.

    Estimates from a rough grid.
    """

    tilt: Floats
    mean: Floats
    deviation: Floats
    log_delta: Floats

    @classmethod
    def of(cls, parts: Parts) -> Ladder:
        """Tilts are added until the means of neighbouring ones are at most two deviations apart."""
        step = parts[0][0].step
        deviation = math.sqrt(total_cumulant(parts, 0.0)[2]) or step

        def row(theta: float) -> tuple[float, float, float, float]:
            k, mean, variance = total_cumulant(parts, theta)
            return theta, mean, max(math.sqrt(variance), 1e-3 * step), saddle(k, mean, variance, theta)

        rows, theta = [row(0.0)], 0.1 / deviation
        while theta <= MOST_TILT / step and rows[-1][3] > -750 and rows[-1][2] > 1e-3 * step:
            rows.append(row(theta))
            theta = max(1.25 * theta, theta + 0.25 / rows[-1][2])
        at = 0
        while at + 1 < len(rows) < _MOST_RUNGS:
            (low, mean, narrow, _), (high, further, wide, _) = rows[at], rows[at + 1]
            if further - mean > 2 * max(narrow, wide) and high > 1.001 * low:
                rows.insert(at + 1, row(low + (high - low) / 2))
            else:
                at += 1
        tilts, means, deviations, log_deltas = (np.array(column) for column in zip(*rows, strict=True))
        return cls(tilts, np.maximum.accumulate(means), deviations, np.minimum.accumulate(log_deltas))

    def near(self, epsilon: Floats) -> Floats:
        """The deviation of the losses that decide at each eps, less where their tilt is so steep that it counts."""
        tilt = np.maximum(np.interp(epsilon, self.mean, self.tilt), 1e-300)
        return np.asarray(np.minimum(np.interp(epsilon, self.mean, self.deviation), STEEP / tilt), dtype=np.float64)
