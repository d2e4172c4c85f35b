"""Which outputs to count: events of the form {score >= threshold}, chosen on samples that are not tested."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapedp.audit.bounds import lower_bound, upper_bound
from shapedp.audit.claim import Claim
from shapedp.numerics.arrays import Floats

_CANDIDATES = 300
_CAUTION = 2.0
_RARE = 12
_UNSEEN = 3.0  # hits that few samples may have missed


@dataclass(frozen=True)
class Event:
    """{score >= threshold} under the first input against the second; `reverse` swaps them and negates the score.

    `epsilon` is where on the profile the event was chosen for.
    """

    reverse: bool
    threshold: float
    epsilon: float

    def hits(self, scores: Floats) -> int:
        """How many of these scores lie in the event."""
        return int(np.count_nonzero((-scores if self.reverse else scores) >= self.threshold))


@dataclass(frozen=True)
class Tally:
    """Bounds on P(event) and Q(event) that hold together: P is the input that makes it likelier."""

    event: Event
    p_lower: float
    q_upper: float

    def delta(self, epsilon: float) -> float:
        """A lower bound on delta at epsilon: P - e^epsilon Q."""
        return max(self.p_lower - math.exp(min(epsilon, 700.0)) * self.q_upper, 0.0)

    def epsilon(self, delta: float) -> float:
        """A lower bound on epsilon at delta: log((P - delta)/Q)."""
        return max(math.log((self.p_lower - delta) / self.q_upper), 0.0) if self.p_lower > delta else 0.0


def tally(event: Event, hits: Sequence[int], n: int, alpha: float) -> Tally:
    """Bounds from the hits among n outputs at either input.

    Guarantee: both hold together with probability at least 1 - alpha.
    """
    likely, unlikely = hits[::-1] if event.reverse else hits
    return Tally(event, float(lower_bound(likely, n, alpha / 2)), float(upper_bound(unlikely, n, alpha / 2)))


def choose(first: Floats, second: Floats, claim: Claim) -> tuple[Event, ...]:
    """At most three events: for delta at the claimed epsilon, epsilon at the claimed delta, and the profile's worst."""
    sides = ((False, first, second), (True, -second, -first))
    ranked = [_ranked(reverse, np.sort(p_scores), np.sort(q_scores), claim) for reverse, p_scores, q_scores in sides]
    best = [max(pair, key=lambda found: found[0])[1] for pair in zip(*ranked, strict=True)]
    return tuple(dict.fromkeys(best))


def _ranked(reverse: bool, p_sorted: Floats, q_sorted: Floats, claim: Claim) -> list[tuple[float, Event]]:
    """The best event of one direction for each purpose, with its merit; estimates are shrunk by their own error."""
    n, m = p_sorted.size, q_sorted.size
    pooled = np.sort(np.concatenate([p_sorted, q_sorted]))[::-1]
    ranks = np.unique(np.geomspace(min(_RARE, pooled.size), pooled.size, _CANDIDATES).astype(np.int64)) - 1
    thresholds = np.unique(pooled[ranks])
    p_hits = n - np.searchsorted(p_sorted, thresholds, side="left")
    q_hits = m - np.searchsorted(q_sorted, thresholds, side="left")
    p, q = p_hits / n, q_hits / m
    p_error, q_error = np.sqrt(p * (1 - p) / n) + 1 / n, np.sqrt(q * (1 - q) / m) + _UNSEEN / m
    low, high = np.maximum(p - _CAUTION * p_error, 0.0), q + _CAUTION * q_error
    ratio = math.exp(min(claim.epsilon, 700.0))
    for_delta = low - ratio * high
    with np.errstate(divide="ignore"):
        for_epsilon = np.log(np.maximum(low - claim.delta, 0.0)) - np.log(high)
    grid, claimed = claim.points
    growth = np.exp(np.minimum(grid, 700.0))[:, None]
    excess = p - growth * q - claimed[:, None]
    for_profile = excess / (p_error + growth * q_error)
    row, column = np.unravel_index(int(np.argmax(for_profile)), for_profile.shape)
    found = []
    for merits in (for_delta, for_epsilon):
        at = int(np.argmax(merits))
        found.append((float(merits[at]), Event(reverse, float(thresholds[at]), claim.epsilon)))
    worst = Event(reverse, float(thresholds[column]), float(grid[row]))
    return [*found, (float(for_profile[row, column]), worst)]
