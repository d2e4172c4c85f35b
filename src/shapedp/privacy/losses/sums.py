"""Losses that are sums over coordinates: noise with independent coordinates, moved by a worst difference."""

from __future__ import annotations

import functools
import math
import sys
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property, singledispatch
from typing import Any, Protocol, Self

import numpy as np

from shapedp.boundary.values import plain
from shapedp.numerics import sum_bounds
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import nonnegative, numeric, probability, real, vector
from shapedp.numerics.inversion import Transform, stop_loss
from shapedp.numerics.outward import ABOVE_8, ABOVE_8192, ROUNDINGS_8, ROUNDINGS_16, ROUNDINGS_8192
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import EPSILON_LIMIT, Loss, renyi_order
from shapedp.sensitivity import L1, Box, Sensitivity

RATIO_ERROR = ROUNDINGS_16  # relative error of the ratios |v_i|/b_i a law and a set give
_ROUNDS = 9
_POINTS = 24
_FEW_POINTS = 8
_FEW_VALUES = 16
_KEPT_VALUES = 1 << 12
_TINY = 5e-324  # by which a number below the normal range may be off
_FAINT_SUM = 1e-250  # below it products of ratios leave the range of floats: the simple bounds are used
_SMALL_SUM = 700.0  # beyond it the ratios alone make every delta 1 to within e^-300


class Terms(Transform, Protocol):
    """A sum of independent losses, one per coordinate that moves: `counts` of them have the ratio `values`."""

    @property
    def values(self) -> Floats:
        """Distinct ratios |v_i|/b_i."""

    @property
    def counts(self) -> Floats:
        """How often each occurs."""

    def split(self) -> tuple[Transform, Floats, Floats] | None:
        """The sum without its atoms, their places and their masses; None if there are none, or too many."""


class _Asked:
    """A sum, a dataclass, and the numbers asked of it, equal where all of it is; `answer` computes what was asked."""

    answer: Callable[[], tuple[Floats, Floats]]

    def __init__(self, total: Any, numbers: tuple[float, ...]) -> None:
        parts = [getattr(total, part.name) for part in fields(total)]
        self._key = (type(total), numbers, *((one.tobytes() if isinstance(one, np.ndarray) else one) for one in parts))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self._key == other._key


@functools.lru_cache(maxsize=32)
def _kept(asked: _Asked) -> tuple[Floats, Floats]:
    """The last answers: a law that a search has settled on is asked again by its certificate."""
    return asked.answer()


class SumLoss(Loss):
    """The loss of a difference v under noise with independent coordinates."""

    slow = True

    @property
    @abstractmethod
    def total(self) -> Terms:
        """The random loss itself."""

    @cached_property
    def _slack(self) -> float:
        """How far rounding of the ratios can move the loss: a term moves by at most |a - a'|."""
        total = self.total
        return RATIO_ERROR * float(total.counts @ total.values)

    def sum_profile(self, epsilon: Floats, total: Terms | None = None) -> tuple[Floats, Floats]:
        """Bounds on the profile of the sum, by inversion of its transform; fewer nodes for many points or ratios.

        Atoms bend the profile, which the inversion's smoothing blurs: where they are few they are added exactly.
        """
        total = self.total if total is None else total
        if not hasattr(total, "counts"):
            raise TypeError("total must be a sum of losses (Terms), or None for the loss's own")
        if epsilon.size != 1 or total.values.size > _KEPT_VALUES:
            return self._summed_profile(epsilon, total)
        key = _Asked(total, (float(epsilon.reshape(-1)[0]), self._slack))
        key.answer = lambda: self._summed_profile(epsilon, total)
        lower, upper = _kept(key)
        return lower.reshape(epsilon.shape).copy(), upper.reshape(epsilon.shape).copy()

    def _summed_profile(self, epsilon: Floats, total: Terms) -> tuple[Floats, Floats]:
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
        high = top = self._top()
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
            if best - start <= ROUNDINGS_8192 * best or (start, best) == (low, high):
                low = start
                break
            low, high = start, best
        best = self._met(best, top, target)
        return Bracket(min(low, best), best)

    def _met(self, epsilon: float, top: float, target: float) -> float:
        """The epsilon, or one a little above it at which `delta`, asked for one point alone, meets the target too."""
        move = ROUNDINGS_8192
        while epsilon < top and self.delta(epsilon).upper > target:
            epsilon, move = min(epsilon * (1 + move), top), 4 * move
        return epsilon

    def _top(self) -> float:
        """An epsilon beyond which nothing is lost, or the search's limit."""
        return EPSILON_LIMIT

    def sum_renyi(self, order: float, total: Terms | None = None) -> Bracket:
        """log M(order - 1)/(order - 1) of the sum."""
        order, total = renyi_order(order), self.total if total is None else total
        value = total.cumulants(order - 1)[0] / (order - 1)
        slip = total.log_mgf_error(order - 1) / (order - 1) + order * self._slack + ROUNDINGS_8 * value
        return Bracket(max(value - slip, 0.0), max(value + slip, 0.0))


@dataclass(frozen=True, eq=False)
class RatioLoss(SumLoss):
    """The loss of log-concave noise whose ratios |v_i|/b_i add up to at most `pure` over the sensitivity set.

    `ratios` belong to one difference of the set; `worst` says that this difference is the worst of the set: a corner
    of a box, a vertex of an L1 ball. A subclass has `total` and `_simple`, bounds that need no sum.

    Guarantee: (pure, 0)-DP, if the loss of a coordinate is at most its ratio. For delta > 0 and a `worst` difference
    the bracket holds the exact profile of the sum of the coordinates' losses; otherwise it is that of `_simple`.
    For log-concave noise min(p(x), e^eps p(x + v)) is jointly log-concave, so that delta is quasi-convex in v
    (Prekopa 1973) and largest at a vertex of a polytope; all vertices of a box are alike.
    """

    pure: float = field()
    ratios: Floats = field(default_factory=lambda: np.zeros(1))
    worst: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        plain(self)
        pure, given = real("pure", self.pure), numeric("ratios", self.ratios).astype(np.float64, copy=False)
        object.__setattr__(self, "pure", pure if pure == math.inf else nonnegative("pure", pure))
        vector("ratios", np.minimum(given, sys.float_info.max), least=0.0)
        object.__setattr__(self, "ratios", frozen(given))
        if self._sum > pure * ABOVE_8192:
            raise ValueError(f"ratios must add up to at most pure = {pure!r}, got {self._sum!r}")

    @classmethod
    def under_noise(cls, sensitivity: Sensitivity, scales: Floats) -> Self:
        """The loss of noise with these scales when neighbours move the answer by a vector of the set."""
        ratios, worst = worst_ratios(sensitivity, scales)
        return cls(sensitivity.l1_reach(scales)[1], ratios, worst=worst)

    @abstractmethod
    def _simple(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """What the largest ratio alone shows, and the worst vertex of the cross-polytope around the set."""

    @property
    def summed(self) -> bool:
        """Whether `total` is the law of the loss."""
        return True

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return self._sum == math.inf

    @property
    def slow(self) -> bool:  # type: ignore[override]
        return self.summed and self.ratios.size > 1

    @cached_property
    def _sum(self) -> float:
        top = float(self.ratios.max())
        return max(sum_bounds(self.ratios)[0], 0.0) if math.isfinite(top) else math.inf

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        lower, upper = self._simple(epsilon)
        inside = (epsilon < self.pure) & (epsilon < self._sum)
        if self.slow and _FAINT_SUM < self._sum < _SMALL_SUM and inside.any():
            low, high = self.sum_profile(epsilon[inside])
            lower[inside] = np.maximum(lower[inside], low)
            if self.worst:
                upper[inside] = np.maximum(np.minimum(upper[inside], high), lower[inside])
        return lower, upper

    def renyi(self, alpha: float) -> Bracket:
        """log M(alpha - 1)/(alpha - 1) of the sum where the difference is the worst; at most alpha pure^2/2 and pure.

        Reference: Mironov 2017, Proposition 6; Bun and Steinke 2016, Proposition 1.4.
        """
        order = renyi_order(alpha)
        upper = min(order * self.pure / 2 * self.pure, self.pure) * ABOVE_8 + (_TINY if self.pure else 0.0)
        if not self.summed or not _FAINT_SUM < self._sum < _SMALL_SUM:
            return Bracket(0.0, upper)
        found = self.sum_renyi(order)
        upper = min(upper, found.upper) if self.worst else upper
        return Bracket(min(found.lower, upper), upper)

    def _top(self) -> float:
        return self.pure if math.isfinite(self.pure) else super()._top()


@singledispatch
def worst_ratios(sensitivity: Sensitivity, scales: Floats) -> tuple[Floats, bool]:
    """Ratios |v_i|/b_i of one difference of the set, and whether it is the worst for log-concave noise."""
    return ratios_of(np.abs(sensitivity.extreme()), scales), False


@worst_ratios.register(Box)
def _box(sensitivity: Box, scales: Floats) -> tuple[Floats, bool]:
    return ratios_of(sensitivity.profile, scales), True


@worst_ratios.register(L1)
def _cross(sensitivity: L1, scales: Floats) -> tuple[Floats, bool]:
    """The vertex along the coordinate of least noise."""
    return ratios_of(np.array([sensitivity.radius]), np.array([float(scales.min())])), True


def ratios_of(difference: Floats, scales: Floats) -> Floats:
    """|v_i|/b_i where it is above 0; a single 0 where it never is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = difference / scales
    ratios = np.where(difference == 0, 0.0, ratios)
    return ratios[ratios > 0] if (ratios > 0).any() else np.zeros(1)
