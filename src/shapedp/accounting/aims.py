"""Where a view of a composition is to be tight, and how far its bounds are apart there: guides, no bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shapedp.accounting.cumulants import Parts, calmer_tilt, saddle, tilt_for_mean, total_cumulant

FADED = 1e-300
_FAINT = math.log(FADED) - 10


@dataclass(frozen=True)
class Aim:
    """Where a view is to be tight: the tilt and the best one, epsilon and delta there.

    `tail_mass` may wrap around, `share` of the tilted masses may be cut off; `faint`: delta is next to the least float,
    so that finer grids show nothing.
    """

    theta: float
    best: float
    epsilon: float
    delta: float
    tail_mass: float
    share: float
    faint: bool
    steepest: float

    @property
    def tilts(self) -> tuple[float, ...]:
        """The tilts at which masses count."""
        return tuple({0.0, self.theta, self.best})

    @classmethod
    def near(cls, upper: Parts, epsilon: float, accuracy: float, steepest: float) -> Aim:
        """From the masses of a composition, and the epsilon asked for."""
        best = min(tilt_for_mean(upper, epsilon), steepest)
        k, mean, variance = total_cumulant(upper, best)
        delta = math.exp(min(max(saddle(k, mean, variance, best), -650.0), 0.0))
        theta = calmer_tilt(upper, best)
        # a tilt short of the best leaves the focus in the tail: what wraps around must be rarer by as much
        short = total_cumulant(upper, theta)[0] - theta * epsilon - (k - best * epsilon)
        share = math.exp(-max(short, 0.0))
        tail_mass = max(min(accuracy * 1e-5, 1e-9) * share, 1e-15)
        lost = math.fsum(n * part.infinity for part, n in upper)
        faint = k - best * epsilon < _FAINT and lost < FADED  # by Chernoff's bound
        return cls(theta, best, epsilon, delta, tail_mass, max(min(accuracy, 0.1) * share, 1e-12), faint, steepest)


def log_gap(lower: Parts, upper: Parts, aim: Aim, cap: float) -> float:
    """How far the cumulants are apart, losses clipped where those of lower masses beyond the cap were merged."""
    variance = total_cumulant(upper, aim.theta)[2]
    # near the centre the extra variance counts relative to the whole, hence the second term of the tilt
    near = math.hypot(aim.theta, 1 / math.sqrt(variance)) if variance > 0 else aim.theta
    theta = max(aim.theta, calmer_tilt(upper, near))
    clipped = []
    for (low, n), (high, _) in zip(lower, upper, strict=True):
        kept = low.apart(cap)
        pair = (low, high) if kept is low else (low.clipped(kept.span[1]), high.clipped(kept.span[1]))
        clipped.append((pair, n))
    ends = [total_cumulant([(pair[side], n) for pair, n in clipped], theta)[0] for side in (0, 1)]
    return abs(ends[1] - ends[0])
