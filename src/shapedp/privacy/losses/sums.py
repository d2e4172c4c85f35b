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
_FEW_POINTS = 8
_FEW_VALUES = 16


class SumLoss(Loss):
    """The loss of a difference v under noise with independent Laplace coordinates and a Gaussian part."""

    slow = True

    @property
    @abstractmethod
    def total(self) -> LaplaceSum:
        """The random loss itself."""

    @cached_property
    def _slack(self) -> float:
        """How far rounding of the ratios can move the loss: a term moves by at most |a - a'|."""
        total = self.total
        return RATIO_ERROR * float(total.counts @ total.values)

    def sum_profile(self, epsilon: Floats, total: LaplaceSum | None = None) -> tuple[Floats, Floats]:
        """Bounds on the profile of the sum, by inversion of its transform; fewer nodes for many points or ratios.

        Atoms bend the profile, which the inversion's smoothing blurs: where they are few they are added exactly.
        """
        total = self.total if total is None else total
        few = epsilon.size <= _FEW_POINTS and total.values.size <= _FEW_VALUES
        nodes = 2**18 if few else 2**16
        split = total.split() if epsilon.size <= _FEW_POINTS else None
        if split is None:
            return stop_loss(total, epsilon, slack=self._slack, nodes=nodes)
        rest, places, masses = split
        lower, upper = stop_loss(rest, epsilon, slack=self._slack, nodes=nodes)
        ends = [
            -np.expm1(np.minimum(epsilon[:, None] + shift - places, 0.0)) @ masses
            for shift in (self._slack, -self._slack)
        ]
        return lower + ends[0] * (1 - 2.0**-38), np.minimum(upper + ends[1] * (1 + 2.0**-38), 1.0)

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
