"""Cheap lower bounds on the delta of a composition: every upper bound is checked against them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import betainc

from shapedp.numerics import SelfCheckError
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8192, BELOW_8192
from shapedp.privacy.losses.base import Loss

_LEVELS = np.concatenate([[0.0], np.geomspace(1e-8, 700.0, 79)])
_NEAR_TOP = 1 - 2.0 ** -np.arange(1.0, 31.0)
_PRICES = np.geomspace(1e-9, 1e14, 93)
_DEVIATIONS = np.linspace(-6.0, 12.0, 19)
_BLOCK = 128  # points at once
_FUNCTION = 1e-9  # more than betainc errs by, relative to it (docs/special-functions.md)
_MARGIN = 1e-9
_UNDERFLOW = 1e-240  # below it betainc loses digits, from 1e-275 on all of them (1e-12 of it above: test_floor_tails)


class Floor:
    """Tests that tell the two neighbours apart, with their exact power, for parts (loss, count) in one direction.

    Guarantee: for any test, delta(eps) >= P(test) - e^eps Q(test). Three kinds are used: a test of one part alone;
    "every part's loss exceeds its level t", with P = prod P(L > t)^n and Q <= e^(-sum n t) P; and "the loss of at
    least k of n equal parts exceeds t", a pair of binomial laws.
    """

    def __init__(self, parts: tuple[tuple[Loss, int], ...], reverse: bool) -> None:
        self._parts = parts
        self._reverse = reverse

    def _profile(self, loss: Loss, epsilon: Floats) -> tuple[Floats, Floats]:
        return loss.profile(epsilon, reverse=self._reverse)

    @cached_property
    def _events(self) -> list[tuple[Floats, Floats, Floats]]:
        """Of each part: levels t, P(L > t) from below and Q(L > t) from above.

        delta is convex in k = e^t, its slope is -Q(L > t), and P(L > t) = delta + e^t Q(L > t): chords bound them.
        """
        rows = []
        for loss, _ in self._parts:
            levels = np.union1d(_LEVELS, _NEAR_TOP * loss.pure) if 0 < loss.pure < np.inf else _LEVELS
            lower, upper = self._profile(loss, levels)
            gap = np.diff(levels)
            with np.errstate(under="ignore", over="ignore"):  # e^t Q(L > t), from below and from above
                after = np.append(np.maximum((lower[:-1] - upper[1:]) / np.expm1(gap), 0.0), 0.0)
                before = np.insert((upper[:-1] - lower[1:]) / -np.expm1(-gap), 0, 1.0)
                q = np.clip(np.minimum(before, 1.0) * np.exp(-levels) * (1 + _MARGIN) + _UNDERFLOW, 0.0, 1.0)
            rows.append((levels, np.clip((lower + after) * (1 - _MARGIN), 0.0, 1.0), q))
        return rows

    @cached_property
    def _all_above(self) -> tuple[Floats, Floats]:
        """log prod p^n and sum n t of "every loss exceeds its level", one pair for each price of probability."""
        logs, sums = np.zeros(_PRICES.size), np.zeros(_PRICES.size)
        for (levels, p, _), (_, n) in zip(self._events, self._parts, strict=True):
            with np.errstate(divide="ignore"):
                log = np.log(p)
            best = np.argmax(log + _PRICES[:, None] * levels, axis=1)
            logs += n * log[best]
            sums += n * levels[best]
        return logs * ABOVE_8192, sums * BELOW_8192

    @cached_property
    def _counts(self) -> tuple[Floats, Floats]:
        """P and Q of "at least k of n losses exceed t", for some t and k of every repeated part."""
        found = [self._binomial(p, q, n) for (_, p, q), (_, n) in zip(self._events, self._parts, strict=True) if n > 1]
        if not found:
            return np.zeros(1), np.zeros(1)
        p, q = (np.concatenate([pair[side] for pair in found]) for side in (0, 1))
        told = np.isfinite(p) & np.isfinite(q)  # a user's loss may give NaN
        order = np.lexsort((-p[told], q[told]))
        p, q = np.append(0.0, p[told][order]), np.append(0.0, q[told][order])
        best = np.append(True, p[1:] > np.maximum.accumulate(p)[:-1])  # the others have no more P at no less Q
        return p[best], q[best]

    @staticmethod
    def _binomial(p: Floats, q: Floats, n: int) -> tuple[Floats, Floats]:
        """P from below and Q from above: a Q that underflows is not 0, for e^eps times it may be much."""
        p, q = p[:, None], q[:, None]
        k = np.clip(np.ceil(n * p + _DEVIATIONS * np.sqrt(n * p * (1 - p))), 1, n)
        with np.errstate(under="ignore"):
            power = np.asarray(betainc(k, n - k + 1, p), dtype=np.float64).ravel() * (1 - _FUNCTION)
            level = np.asarray(betainc(k, n - k + 1, q), dtype=np.float64).ravel() * (1 + _FUNCTION)
        return np.where(power > _UNDERFLOW, power, 0.0), level + _UNDERFLOW

    def at(self, epsilon: Floats) -> Floats:
        """The best of the bounds at each eps."""
        found = np.zeros(epsilon.shape)
        for loss, _ in self._parts:
            found = np.fmax(found, self._profile(loss, epsilon)[0])  # a NaN of a user's loss shows nothing
        logs, sums = self._all_above
        p, q = self._counts
        flat, points = found.reshape(-1), epsilon.reshape(-1)
        with np.errstate(under="ignore", over="ignore", divide="ignore", invalid="ignore"):
            for k in range(0, points.size, _BLOCK):
                one, here = points[k : k + _BLOCK, None], slice(k, k + _BLOCK)
                together = np.exp(logs) * -np.expm1(np.minimum(one - sums, 0.0))
                counted = np.where(one < 700, p - q * np.exp(np.minimum(one, 700.0)), 0.0)
                for shown in (together, counted):
                    flat[here] = np.fmax(flat[here], np.fmax.reduce(shown, axis=1))
        return flat.reshape(epsilon.shape) * (1 - _MARGIN)

    def checked(self, epsilon: Floats, upper: Floats) -> Floats:
        """`at`, after making sure that no upper bound lies below it."""
        floor = self.at(epsilon)
        if (floor > upper).any():
            i = int(np.flatnonzero(floor.reshape(-1) > upper.reshape(-1))[0])
            raise SelfCheckError(
                f"an upper bound on delta, {upper.reshape(-1)[i]!r}, lies below {floor.reshape(-1)[i]!r}, which a "
                f"simple test reaches, at epsilon {epsilon.reshape(-1)[i]!r}"
            )
        return floor
