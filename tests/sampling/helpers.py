"""Sources for tests, and the bounds their statistics are held to."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np

FALSE_ALARM = 1e-6


def band(n: int) -> float:
    """Dvoretzky-Kiefer-Wolfowitz: P(sup |F_n - F| > band) <= 1e-6; also Hoeffding's for a mean."""
    return sqrt(log(2 / FALSE_ALARM) / (2 * n))


def largest_gap(sample: np.ndarray, cdf) -> float:
    """Return sup |F_n - F| over the sample's values, F taken right of each value."""
    values, counts = np.unique(sample, return_counts=True)
    ours = np.cumsum(counts) / sample.size
    theirs = cdf(values)
    return float(np.abs(ours - theirs).max())


class Refusing:
    """A source that must not be asked."""

    secure = True

    def words(self, n: int) -> np.ndarray:
        raise AssertionError("randomness was drawn")


@dataclass
class Scripted:
    """A source that answers from a list."""

    answers: list[int]
    secure: bool = False
    asked: list[int] = field(default_factory=list)

    def words(self, n: int) -> np.ndarray:
        self.asked.append(n)
        taken, self.answers = self.answers[:n], self.answers[n:]
        assert len(taken) == n, "the script is too short"
        return np.array([a % 2**64 for a in taken], dtype=np.uint64)
