"""A loss known at some epsilons and, by convexity, between them: for losses whose profile is slow to compute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_32, ROUNDINGS_8192
from shapedp.privacy.losses.base import Loss

_NODES = np.concatenate(
    [[0.0], np.geomspace(1e-9, 1e3, 193), np.linspace(1e3, 1e4, 40)[1:], np.linspace(1e4, 1e5, 181)[1:]]
)
_MOST = 2**16
_FINEST = 1e-5  # some five thousand nodes
_ROUNDS = 30
_PARTS = 16
_SHARE = 1 / 40  # of the accuracy asked for: a composition widens the bounds
_FADE = 1 / 8  # far out the bounds may be rougher, by this power of how far delta has fallen
_NEAR = 16.0  # and as the epsilons that are asked for grow
_ROUGHEST = 0.3
_GONE = 1e-120
_WITHIN = 1 / 16  # of the allowed gap: what the loss itself may be apart at the nodes
_LEAST = 1e-2
_NARROW = ROUNDINGS_8192


@dataclass(frozen=True, eq=False)
class Curve:
    """Bounds on the profile of one direction at ascending epsilons from 0 on, and between them.

    Guarantee: the profile is convex in k = e^epsilon, so it lies below the chord of a cell and above the chords of
    the cells beside it, extended; beyond the last node it is at most what it is there.
    """

    epsilon: Floats
    lower: Floats
    upper: Floats

    @cached_property
    def _lines(self) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """Of each cell, in t = e^(epsilon - left end) - 1: three lines by their values at t = 0 and their slopes.

        The chord, and those of the cells before and after it (flat where there is none), moved outward by rounding.
        """
        low, high = self.lower, self.upper
        width = np.diff(self.epsilon)
        grown, back = np.expm1(width), -np.expm1(-width)
        start = low[:-1] * (np.arange(width.size) > 0)
        before = np.append(0.0, (low[1:-1] - high[:-2]) / back[:-1])
        after = np.append((low[1:-1] - high[2:]) / grown[1:], 0.0)
        return (
            high[:-1] * (1 + ROUNDINGS_32),
            np.diff(high) / grown,
            start - ROUNDINGS_32 * (start + np.abs(before) * grown),
            before,
            low[1:] + after * back - ROUNDINGS_32 * (low[1:] + np.abs(after)),
            -after * np.exp(-width),
        )

    def at(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Bounds at any epsilon >= 0, rounding included."""
        nodes = self.epsilon
        cell = np.minimum(np.searchsorted(nodes, epsilon, side="right") - 1, nodes.size - 2)
        t = np.expm1(np.minimum(epsilon, nodes[-1]) - nodes[cell])
        chord, drop, before, rise, after, fall = (line[cell] for line in self._lines)
        upper = np.minimum(chord + drop * t, 1.0)
        lower = np.maximum(np.maximum(before + rise * t, after + fall * t), 0.0)
        beyond = epsilon > nodes[-1]
        if beyond.any():
            lower[beyond], upper[beyond] = 0.0, self.upper[-1]
        return np.minimum(lower, upper), upper


@dataclass(frozen=True, eq=False)
class Table(Loss):
    """Bounds on a loss that are quick to evaluate.

    Guarantee: they hold what the loss's own bounds hold.
    """

    forward: Curve
    backward: Curve

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.forward is self.backward

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        return (self.backward if reverse else self.forward).at(epsilon)

    @classmethod
    def of(cls, loss: Loss, accuracy: float) -> Table:
        """A table for compositions whose delta is to be bracketed to a relative `accuracy`.

        A moment E e^(t L) - 1 is an integral of the profile against positive weights: what counts is how far the
        bounds are apart relative to the profile.
        """
        goal = max(accuracy * _SHARE, _FINEST)
        forward = _curve(loss, goal, reverse=False)
        return cls(forward, forward if loss.symmetric else _curve(loss, goal, reverse=True))


def _roughness(curve: Curve, epsilon: Floats, value: Floats, accuracy: float) -> Floats:
    """The relative gap that is allowed at an epsilon where the profile has about that value."""
    fallen = np.maximum(curve.upper[0] / np.maximum(value, 1e-300), 1.0)
    return np.asarray(np.minimum(accuracy * fallen**_FADE * (1 + epsilon / _NEAR), _ROUGHEST))


def _curve(loss: Loss, accuracy: float, *, reverse: bool) -> Curve:
    """Cells are split until the bounds are close enough in their middle, or hardly closer than at their ends.

    The gap falls with the square of the width, which says into how many parts a cell goes.
    """
    gaps = np.full_like(_NODES, accuracy * _WITHIN)
    curve = Curve(_NODES, *loss.profile_within(_NODES, gaps, None, reverse=reverse))
    for _ in range(_ROUNDS):
        nodes = curve.epsilon
        width, middle = np.diff(nodes), 0.5 * (nodes[1:] + nodes[:-1])
        lower, upper = curve.at(middle)
        noise = np.maximum(curve.upper - curve.lower, 0.0)
        allowed = upper * _roughness(curve, middle, upper, accuracy)
        excess = (upper - lower) / np.maximum(np.maximum(allowed, 8 * np.maximum(noise[1:], noise[:-1])), 1e-300)
        excess[(upper <= _GONE) | (width <= _NARROW * middle)] = 0.0
        parts = np.where(excess > 1, np.ceil(np.sqrt(np.minimum(excess, _PARTS**2))), 1).astype(np.intp)
        new = np.repeat(np.arange(width.size), parts - 1)
        if not new.size or nodes.size + new.size > _MOST:
            break
        share = (np.arange(new.size) - np.repeat(np.cumsum(parts - 1) - parts + 1, parts - 1) + 1) / parts[new]
        points = nodes[new] + share * width[new]
        below, above = curve.at(points)
        gaps = _WITHIN * _roughness(curve, points, above, accuracy)
        found = loss.profile_within(points, gaps, np.maximum(below, _LEAST * above), reverse=reverse)
        old = (nodes, curve.lower, curve.upper)
        curve = Curve(*(np.insert(one, new + 1, other) for one, other in zip(old, (points, *found), strict=True)))
    return curve
