"""The privacy loss of Gaussian mixing: affine in chi-squares."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from shapedp.numerics import SearchError, last_true, last_true_near
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, nonnegative, one_of, positive, probability, real
from shapedp.numerics.chisquare import lower_excess, upper_excess
from shapedp.numerics.contour import QuadraticSum
from shapedp.numerics.outward import ABOVE_8, BELOW_WIDE, ROUNDINGS_8, ROUNDINGS_32
from shapedp.numerics.roots import increasing_root
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Loss, one_relation, renyi_order
from shapedp.privacy.losses.gaussian import GaussianLoss

Neighbours = Literal["zero-out", "replace"]
NEIGHBOURS: tuple[Neighbours, ...] = ("zero-out", "replace")
ROWS_LIMIT = 10**8


@dataclass(frozen=True)
class MixingLoss(Loss):
    """The loss of k rows of N(0, A + x x^T) against k rows of N(0, A), or of N(0, A + y y^T) ("replace").

    t bounds x^T (A + x x^T)^-1 x over all records: t = 1/gamma, gamma = 1 + least eigenvalue of A over |x|^2. `mu`
    is that of a Gaussian release beside it (a private eigenvalue): the two compose exactly. `least` is a lower bound on
    the t that neighbours attain, where t is only an upper bound; 0 where nothing is known from below.

    Guarantee: the bracket holds delta(eps) of the worst pair, by positive sums or a contour integral with an error
    bound. Worst: whitened by the first covariance, a pair is a product of independent coordinates N(0, 1) against
    N(0, r); zero-out has one with r = 1 - t' or 1/(1 - t'), t' <= t; replacement has two, 1 - t <= r_1 <= 1 <= r_2 <=
    1/(1 - t), since (|w|^2 + (v w)^2)/(|w|^2 + (u w)^2) lies between 1/(1 + |u|^2) and 1 + |v|^2 for every w. Adding
    the same normal to both sides moves any such r towards 1, so by data processing the extreme ratios are worst, and
    they are attained: by a lone row, and by exchanging two orthogonal ones.
    Reference: Lev et al. 2025, The Gaussian mixing mechanism, Lemma 1 (its Renyi curve); the profile is not theirs.

    Example:
        >>> loss = MixingLoss.calibrate(20, 1.0, 1e-6)
        >>> loss.delta(1.0).upper <= 1e-6 < loss.delta(0.99).upper
        True
    """

    rows: int
    t: float
    neighbours: Neighbours = "zero-out"
    mu: float = 0.0
    least: float | None = None

    def __post_init__(self) -> None:
        rows = count("rows", self.rows)
        if rows > ROWS_LIMIT:
            raise ValueError(f"rows must be at most {ROWS_LIMIT:g}, got {self.rows!r}")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "t", probability("t", self.t))
        if 0 < self.t < 1e-100:
            raise ValueError(f"t must be 0 or at least 1e-100, got {self.t!r}")
        label(self, self.neighbours)
        object.__setattr__(self, "mu", nonnegative("mu", self.mu))
        if self.least is not None and not 0 <= real("least", self.least) <= self.t:
            raise ValueError(f"least must lie in [0, t = {self.t!r}], got {self.least!r}")

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.neighbours == "replace"

    @property
    def gamma(self) -> float:
        """1/t: the least eigenvalue of the covariance, the record included, in units of the squared row bound."""
        return math.inf if self.t == 0 else 1 / self.t

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        if self.least is not None and self.least < self.t:
            _, upper = replace(self, least=None).profile(epsilon, reverse=reverse)
            if self.least == 0:
                return np.zeros_like(upper), upper
            lower, _ = replace(self, t=self.least, least=None).profile(epsilon, reverse=reverse)
            return np.minimum(lower, upper), upper
        if self.t == 0:
            return GaussianLoss(self.mu).profile(epsilon)
        if self.mu == 0 and self.neighbours == "zero-out":
            flat = epsilon.ravel()
            ends = lower_excess(self.rows, self.t, flat) if reverse else upper_excess(self.rows, self.t, flat)
            return ends[0].reshape(epsilon.shape), ends[1].reshape(epsilon.shape)
        return self._law(reverse).hockey_stick(epsilon)

    def _law(self, reverse: bool) -> QuadraticSum:
        """The loss as a sum of chi-squares: t Z/(1-t) with the record first, -t Z with it second, both if replaced."""
        odds, shift = self.t / (1 - self.t), self.rows / 2 * math.log1p(-self.t)
        if self.neighbours == "replace":
            return QuadraticSum(self.rows, (odds, -self.t), 0.0, self.mu)
        return QuadraticSum(self.rows, (-self.t,) if reverse else (odds,), -shift if reverse else shift, self.mu)

    def renyi(self, alpha: float) -> Bracket:
        """k/(2(a-1)) (a log(1-t) - log(1 - a t)) of the first direction, infinite from a = 1/t; the larger of the two.

        The reverse is k/(2(a-1)) ((1-a) log(1-t) - log(1 + (a-1) t)); replacing a row adds them up.
        Reference: Lev et al. 2025, Lemma 1.
        """
        alpha = renyi_order(alpha)
        if self.least is not None and self.least < self.t:
            lower = replace(self, t=self.least, least=None).renyi(alpha).lower if self.least else 0.0
            upper = replace(self, least=None).renyi(alpha).upper
            return Bracket(min(lower, upper), upper)
        beside = GaussianLoss(self.mu).renyi(alpha)
        if alpha * self.t >= 1 - ROUNDINGS_8:
            return Bracket(beside.lower if alpha * self.t < ABOVE_8 else math.inf, math.inf)
        log_kept, scale = math.log1p(-self.t), self.rows / (2 * (alpha - 1))
        ends = []
        for first, second in (
            (alpha * log_kept, math.log1p(-alpha * self.t)),
            ((1 - alpha) * log_kept, math.log1p((alpha - 1) * self.t)),
        ):
            rough = ROUNDINGS_8 * (abs(first) + abs(second) + self.t * alpha / (1 - alpha * self.t))
            ends.append((scale * max(first - second - rough, 0.0), scale * (first - second + rough)))
        low, high = zip(*ends, strict=True)
        join = sum if self.neighbours == "replace" else max
        up = ABOVE_8
        return Bracket((join(low) + beside.lower) / up, (join(high) + beside.upper) * up)

    @property
    def tcdp(self) -> tuple[float, float]:
        """(rho, w): the Renyi divergence is at most rho alpha for 1 < alpha < w (zero-out, gamma > 5/2, mu = 0).

        Reference: Lev et al. 2025, Corollary 1: (k/(2 gamma^2), 2 gamma/5).
        """
        if self.neighbours != "zero-out" or self.mu or not self.t < 0.4:
            raise ValueError("tCDP is known for zero-out neighbours, gamma > 5/2 and mu = 0")
        return self.rows * self.t * self.t / 2 * ABOVE_8, 0.4 / self.t

    @classmethod
    def calibrate(
        cls,
        rows: int,
        epsilon: float,
        delta: float,
        *,
        neighbours: Neighbours = "zero-out",
        mu: float = 0.0,
        tolerance: float = 1e-14,
        near: MixingLoss | None = None,
    ) -> MixingLoss:
        """The largest t that meets (epsilon, delta), on the private side: the least gamma.

        Guarantee: `calibrate(...).delta(epsilon).upper <= delta`. delta grows with t (data processing).
        `tolerance` is how far below the largest t the answer may lie, relatively; `near` answers a claim close by.
        """
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
        if delta == 0:
            raise ValueError("delta must be > 0 for Gaussian mixing: its loss is unbounded")
        if GaussianLoss(mu).delta(epsilon).upper >= delta:
            raise ValueError(f"the release beside it, mu = {mu:g}, alone spends delta {delta:g} at epsilon {epsilon:g}")
        cls(rows, 0.0, neighbours, mu)

        def holds(t: float) -> bool:
            return cls(rows, t, neighbours, mu).delta(epsilon).upper <= delta

        at = np.array([epsilon])

        def excess(log_t: float) -> float:
            _, upper = cls(rows, math.exp(log_t), neighbours, mu).profile(at)
            return math.log(max(float(upper[0]), 1e-300)) - math.log(delta)

        try:
            start = _guess(rows, epsilon, delta, mu) if near is None else near.t
            root = math.exp(increasing_root(excess, math.log(start), max(tolerance, 1e-10)))  # of the usual direction
            return cls(rows, last_true_near(holds, root, relative=max(tolerance, ROUNDINGS_32)), neighbours, mu)
        except (SearchError, ValueError, OverflowError):
            return cls(rows, last_true(holds, 1e-90, BELOW_WIDE), neighbours, mu)


def label(loss: Loss, neighbours: Neighbours) -> None:
    """The neighbour relation that a loss is computed for is the one it carries."""
    one_relation([loss.adjacency, one_of("neighbours", neighbours, NEIGHBOURS)])
    object.__setattr__(loss, "adjacency", neighbours)


def _guess(rows: int, epsilon: float, delta: float, mu: float) -> float:
    """The t at which many rows would look like the Gaussian release that is left beside mu."""
    left = max(GaussianLoss.calibrate(epsilon, delta).mu ** 2 - mu**2, 1e-12 * mu**2)
    return min(math.sqrt(left * 2 / rows), 0.5)
