"""What is known of a pass over shuffled batches of fixed sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count
from shapedp.numerics.outward import WIDE
from shapedp.privacy.losses.base import Loss, Pieces
from shapedp.privacy.losses.gaussian import GaussianLoss

_PLACES = 400


@dataclass(frozen=True)
class ShuffledLoss(Loss):
    """The loss of a pass over `steps` batches of fixed sizes, in an order drawn at random; neighbours blank a record.

    Above: fix the order, which both data sets share. Then one run differs, by the base's loss; a mixture of orders
    only loses. That is the guarantee of an order known to everybody: no amplification is proved, since the places of
    the other records tell where this one is. Below, for Gaussian noise: all others move their sums by -mu, so the pair
    is mix N(2 mu e_i, I) against mix N(mu e_i, I), looked at through the events {max z > c} and {max z <= c}.

    Guarantee: lower <= truth <= upper; whether the truth is the lower pair's is open. Add-remove and replace are
    refused: sizes change under the first, and a replaced record costs twice the base's norm.
    Reference: Chua et al. 2024, How private are DP-SGD implementations (the lower pair).

    Example:
        >>> loss = ShuffledLoss(GaussianLoss(1.0), 10)
        >>> loss.delta(1.0).upper == GaussianLoss(1.0).delta(1.0).upper, loss.delta(1.0).lower > 0.06
        (True, True)
    """

    base: Loss
    steps: int

    symmetric = False

    def __post_init__(self) -> None:
        self._inherit([self.base])
        object.__setattr__(self, "steps", count("steps", self.steps))
        if self.adjacency not in (None, "zero-out"):
            raise ValueError(
                f"a shuffle into batches of fixed sizes has a guarantee under zero-out, none under {self.adjacency}: "
                "blank a record in place of removing it, or place records independently (allocation)"
            )
        object.__setattr__(self, "adjacency", "zero-out")

    @property
    def settled(self) -> bool:  # type: ignore[override]
        return self.base.settled

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return self.base.lost

    @property
    def pure(self) -> float:  # type: ignore[override]
        return self.base.pure

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        lower, upper = self.base.profile(epsilon, reverse=reverse)
        if self.steps == 1:
            return lower, upper
        return np.minimum(self._seen(epsilon, reverse), upper), upper

    def _seen(self, epsilon: Floats, reverse: bool) -> Floats:
        """The largest P(A) - e^epsilon Q(A) over the events, less a margin for rounding."""
        if not isinstance(self.base, GaussianLoss):
            return np.zeros_like(epsilon)
        mu = self.base.mu if self.base.least is None else self.base.least
        c = np.linspace(-4.0, 2 * mu + 9.0, _PLACES)
        others = (self.steps - 1) * log_ndtr(c)
        far, near = (log_ndtr(c - shift) + others for shift in (2 * mu, mu))  # of {max z <= c}
        p, q = (np.exp(near), np.exp(far)) if reverse else (-np.expm1(far), -np.expm1(near))
        with np.errstate(over="ignore", invalid="ignore"):
            found = p * (1 - WIDE) - np.exp(epsilon)[..., None] * q * (1 + WIDE)
        return np.asarray(np.maximum(np.nan_to_num(found, nan=0.0, neginf=0.0).max(-1), 0.0), dtype=np.float64)

    def pieces(self) -> Pieces:
        """The base's from above; of several passes nothing is known from below."""
        base = self.base.pieces()
        part, times = base.parts[0]
        if len(base.parts) != 1 or times != 1 or not isinstance(part, GaussianLoss):
            return Pieces(((self, 1),))  # its profile has nothing from below for other noise than Gaussian
        return Pieces(
            ((GaussianLoss(part.mu, 0.0, adjacency="zero-out"), 1),), base.log_ratio,
            min(base.failure * self.steps, 1.0), min(base.total_variation * self.steps, 1.0),
            base.certain, base.spoilt, base.slip * self.steps**0.5,
        )  # fmt: skip
