"""The privacy loss of a pass in which each record is placed in one step at random."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count
from shapedp.numerics.outward import ABOVE_8, ABOVE_16, ABOVE_WIDE, ROUNDINGS_16
from shapedp.numerics.positive_sums import Points
from shapedp.privacy.losses.adjusted import AdjustedLoss
from shapedp.privacy.losses.base import Loss, Pieces
from shapedp.privacy.losses.discrete import DiscreteLoss
from shapedp.privacy.losses.masses import Masses

RELATIONS = ("add-remove", "zero-out")
_HIGH = 300.0  # losses above it count as infinite
_FINE = 4  # points of one ratio for each point of a sum
_TAIL = 1e-30
_MOST, _MANY = 10**6, 300


@dataclass(frozen=True)
class AllocatedLoss(Loss):
    """The loss of a pass of `steps` runs in which each person is placed in one run, uniformly and independently.

    With (P, Q) the base pair, the person in P, and R_i = dP/dQ of run i: P' = (1/steps) sum_i (P in run i, Q in all
    others) and Q' = Q in all; L = log((R_1 + .. + R_steps)/steps). Under Q' the ratios are independent of mean 1, so
        H(P', Q'; e) = E(S - e^e)_+ and H(Q', P'; e) = e^e E(e^-e - S)_+, S the mean of the ratios.
    Both are means of convex functions: a law of R that is larger in convex order bounds them from above, a smaller one
    from below (`numerics.positive_sums`). S is kept on `nodes` points.

    Why the pair dominates: fix where all other records are placed, which does not depend on this one. Whatever was
    released before, run i is a randomised map of the base pair (Blackwell), with the person as of P and without as of
    Q. These maps in turn make the whole pass of (P', Q'), and a mixture over the others' places only loses.

    Guarantee: lower <= truth <= upper, tight where the base is; never above the base's own (P placed in a known run).
    Reference: Chua et al. 2024, Balls-and-bins sampling for DP-SGD; Feldman and Shenfeld 2025, random allocation.

    Example:
        >>> from shapedp import GaussianLoss
        >>> round(AllocatedLoss(GaussianLoss(1.0), 10).epsilon(1e-6).upper, 2)
        2.65
    """

    base: Loss
    steps: int
    nodes: int | None = None

    def __post_init__(self) -> None:
        self._inherit([self.base])
        object.__setattr__(self, "steps", count("steps", self.steps))
        usual = 1000 if self.steps <= _MANY else 1500
        object.__setattr__(self, "nodes", usual if self.nodes is None else count("nodes", self.nodes))
        if self.steps > _MOST or not 50 <= self._nodes <= 10_000:
            raise ValueError(
                f"steps must be at most {_MOST:,} and nodes from 50 to 10,000: sample longer passes by Poisson"
            )
        if not self.base.symmetric:
            raise ValueError(
                "the loss of one run must be the same in both directions: place plain runs, not sampled ones"
            )
        if self.adjacency is None:
            object.__setattr__(self, "adjacency", RELATIONS[0])
        elif self.adjacency not in RELATIONS:
            raise ValueError(
                f"placing records at random is analysed under {' or '.join(RELATIONS)}, not {self.adjacency}: "
                "derive the sensitivity under that relation, or draw samples of a fixed size"
            )

    @property
    def premises(self) -> tuple[str, ...]:
        """What placing records at random rests on; see `privacy.assumptions`."""
        return ("blanks",) if self.adjacency == "zero-out" and self.steps > 1 else ()

    @property
    def _nodes(self) -> int:
        assert self.nodes is not None
        return self.nodes

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.steps == 1

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
        if self.steps == 1:
            return self.base.profile(epsilon)
        taken = self.pieces()
        if taken.parts[0][0] is not self:
            on_top = (taken.log_ratio, taken.failure, taken.total_variation, taken.slip)
            return AdjustedLoss(taken.parts[0][0], *on_top).profile(epsilon, reverse=reverse)
        return self._plain(epsilon, reverse)

    def _plain(self, epsilon: Floats, reverse: bool) -> tuple[Floats, Floats]:
        upper = self.base.profile(epsilon)[1]
        low, high = (_sum(self.base, self.steps, self._nodes, reverse, end) for end in (False, True))
        with np.errstate(over="ignore", invalid="ignore"):
            k, sign = np.exp(epsilon), -1 if reverse else 1
            at = self.steps * np.exp(sign * epsilon)
            slip = ROUNDINGS_16 * (np.abs(epsilon) + 1)
            factor = (k if reverse else 1.0) / self.steps
            below = low.below(at * (1 - slip), upper=False) if reverse else low.above(at * (1 + slip), upper=False)
            above = high.below(at * (1 + slip), upper=True) if reverse else high.above(at * (1 - slip), upper=True)
            below, above = below * factor * (1 - 2 * slip), above * factor * (1 + 2 * slip)
        above = np.fmin(np.where(np.isfinite(k), above, 1.0), upper)
        return np.fmin(np.nan_to_num(np.where(np.isfinite(k), below, 0.0)), above), above

    def tabulated(self, accuracy: float) -> Loss:
        """Placing a table of the base."""
        base = self.base.tabulated(accuracy)
        return self if base is self.base else replace(self, base=base)

    def pieces(self) -> Pieces:
        """What every run has on top, `steps` times: an error of the sampler is made in each of them."""
        base = self.base.pieces()
        part, times = base.parts[0]
        failure = (base.failure + base.certain) * self.steps * ABOVE_8
        plain = not (failure or base.total_variation or base.slip)
        if plain or base.log_ratio or len(base.parts) != 1 or times != 1:
            return Pieces(((self, 1),))
        return Pieces(
            ((replace(self, base=part), 1),),
            failure=min(failure, 1.0),
            total_variation=min(base.total_variation * self.steps * ABOVE_8, 1.0),
            spoilt=min(base.spoilt * self.steps * ABOVE_8, 1.0),
            slip=base.slip * math.sqrt(self.steps) * ABOVE_16,
        )


@lru_cache(64)
def _ratios(base: Loss, nodes: int) -> DiscreteLoss:
    return DiscreteLoss.of(base, nodes=nodes, tail=_TAIL)


@lru_cache(64)
def _sum(base: Loss, steps: int, nodes: int, reverse: bool, upper: bool) -> Points:
    """The sum of `steps` ratios under Q, for means of (S - k)_+, or in reverse of (k - S)_+."""
    found = _ratios(base, _FINE * nodes)
    if reverse:
        one = _backward(found.reverse_upper if upper else found.reverse_lower, upper)
    else:
        one = _forward(found.upper if upper else found.lower, upper)
    return one.times(steps, nodes, upper=upper, falling=reverse)


def _slack(losses: Floats) -> float:
    """How far e^L is off, and the product of it with a mass."""
    return ROUNDINGS_16 * (float(np.abs(losses).max()) + 4)


def _forward(masses: Masses, upper: bool) -> Points:
    """The law of e^L under Q, from masses of L under P; what P has elsewhere is at infinity, what Q has at 0."""
    losses, logs = masses.held[0] - masses.shift, masses.held[1]
    beyond = masses.infinity if upper or masses.log_price == -math.inf else 0.0
    high = losses > _HIGH
    if high.any():  # from below they are left out: S falls
        beyond += math.fsum(np.exp(logs[high])) * ABOVE_WIDE if upper else 0.0
        losses, logs = losses[~high], logs[~high]
    ratios, held, slack = np.exp(losses), np.exp(logs - losses), _slack(losses)
    mean, mass = math.fsum(np.exp(logs)) + beyond, math.fsum(held)
    if upper:  # means of sums are bounded if those of one, mass and mean, are at least 1: points move up for that
        move = (max(1 - mean, 0.0) + slack) * ABOVE_WIDE
        return Points(np.append(0.0, ratios), np.append(max(1 - mass, 0.0) + slack, held), beyond, slack, slack + move)
    held = held / max(mean, mass, 1.0) * (1 - slack) ** 2  # and from below if they are at most 1
    rest = max((1 - math.fsum(held)) * (1 - slack) - slack, 0.0)
    return Points(np.append(0.0, ratios), np.append(rest, held), beyond / max(mean, 1.0), slack, slack)


def _backward(masses: Masses, upper: bool) -> Points:
    """The law of e^-L under Q, from masses of the reversed loss L under Q; at infinity the ratio is 0."""
    losses, logs = masses.held[0][::-1] - masses.shift, masses.held[1][::-1]
    low = losses < -_HIGH
    if low.any():  # ratios above e^300: smaller ones from above, none from below
        losses, logs = (np.maximum(losses, -_HIGH), logs) if upper else (losses[~low], logs[~low])
    zero, slack = masses.infinity if masses.log_price == -math.inf else 0.0, _slack(losses)
    return Points(np.append(0.0, np.exp(-losses)), np.append(zero, np.exp(logs)), 0.0, slack, slack)
