"""Losses that are sums over coordinates: independent Laplace noise, and one Gaussian part."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property

import numpy as np

from shapedp.numerics.checks import probability
from shapedp.numerics.inversion import stop_loss
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import EPSILON_LIMIT, Floats, Loss

RATIO_ERROR = 2.0**-49  # relative error of the ratios |v_i|/b_i a law and a set give
_ROUNDS = 9
_POINTS = 24


class SumLoss(Loss):
    """The loss of a difference v under noise with independent Laplace coordinates and a Gaussian part."""

    @property
    @abstractmethod
    def total(self) -> LaplaceSum:
        """The random loss itself."""

    @cached_property
    def _slack(self) -> float:
        """How far rounding of the ratios can move the loss: a term moves by at most |a - a'|."""
        total = self.total
        return RATIO_ERROR * (float(total.counts @ total.values) + 4 * total.deviation**2)

    def sum_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Bounds on the profile of the sum, by inversion of its transform; fewer nodes where many points are asked."""
        nodes = 2**18 if epsilon.size <= 8 else 2**17 if epsilon.size <= 64 else 2**16
        return stop_loss(self.total, epsilon, slack=self._slack, nodes=nodes)

    def epsilon(self, delta: float) -> Bracket:
        target = probability("delta", delta)
        high = self._top()
        if not self.delta(0.0).upper > target:
            return Bracket(0.0, 0.0)
        low, best = 0.0, math.inf
        for _ in range(_ROUNDS):
            points = np.linspace(low, high, _POINTS)
            lower, upper = self.profile(points)
            met = np.flatnonzero(upper <= target)
            if not met.size:
                break
            best = min(best, float(points[met[0]]))
            broken = np.flatnonzero(lower > target)
            start = float(points[broken[-1]]) if broken.size else low
            if best - start <= 2.0**-40 * best or (start, best) == (low, high):
                low = start
                break
            low, high = start, best
        return Bracket(min(low, best), best)

    def _top(self) -> float:
        """An epsilon beyond which nothing is lost, or the search's limit."""
        return EPSILON_LIMIT
