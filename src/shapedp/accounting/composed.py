"""The loss of a composition on privacy-loss distributions, bracketed: views of little and of full accuracy by place."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from shapedp.accounting.floor import Floor
from shapedp.accounting.pld import Direction, Place, View
from shapedp.boundary.values import boolean
from shapedp.numerics import SearchError, falling_root, first_true_near, last_true, last_true_near
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, entries, nonnegative, positive, probability, share
from shapedp.numerics.outward import ABOVE_128, BELOW_8192, ROUNDINGS_128, ROUNDINGS_2048, ROUNDINGS_8192
from shapedp.privacy import Bracket, Loss
from shapedp.privacy.losses.base import Pieces

_QUICK = 0.02
_MOST_VIEWS = 30
_SEEN_THROUGH = 1e-2  # the relative gap of a composition of which a sample is taken
_NEAR_PURE = 1 - 2.0**-26  # where delta is met this near to the sum of pure epsilons, that sum is the answer


@dataclass(frozen=True)
class ComposedLoss(Loss):
    """The loss of independent (or adaptively chosen, but fixed beforehand) parts, each with a count.

    Guarantee: lower <= delta <= upper; grid, truncation and rounding errors are all added outward. `accuracy` is the
    relative gap of delta aimed at (finer for short compositions by default). An answer depends on the composition and
    the question alone, never on what was asked before; an upper end that lies below what a simple test shows raises
    SelfCheckError. `certain` is the mass of the composition at infinity,
    `spoilt` the probability that some part's failure was drawn, with or without that effect (`certain` by default).

    Example:
        >>> from shapedp import GaussianLoss
        >>> whole = ComposedLoss(((GaussianLoss(0.1), 25),))
        >>> round(whole.delta(1.0).upper, 6)
        0.00683
    """

    parts: tuple[tuple[Loss, int], ...]
    accuracy: float | None = None
    certain: float = 0.0
    spoilt: float | None = None
    _views: dict[Any, View] = field(default_factory=dict, init=False, repr=False, compare=False)
    _roughs: dict[Any, Bracket] = field(default_factory=dict, init=False, repr=False, compare=False)
    _floors: dict[bool, Floor] = field(default_factory=dict, init=False, repr=False, compare=False)
    _directions: dict[bool, Direction] = field(default_factory=dict, init=False, repr=False, compare=False)
    settled = False

    def __post_init__(self) -> None:
        pairs = entries("parts", self.parts)
        if not pairs or any(type(pair) is not tuple or len(pair) != 2 for pair in pairs):
            raise TypeError("parts must be (loss, count) pairs, at least one")
        object.__setattr__(self, "parts", tuple((loss, count("count", times)) for loss, times in pairs))
        for name in ("certain", "spoilt"):
            if (given := getattr(self, name)) is not None or name == "certain":
                object.__setattr__(self, name, share(name, given))
        self._inherit(loss for loss, _ in self.parts)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return all(loss.symmetric for loss, _ in self.parts)

    @property
    def pure(self) -> float:  # type: ignore[override]
        return self.pieces().pure

    def pieces(self) -> Pieces:
        return Pieces(self.parts, certain=self.certain, spoilt=self.certain if self.spoilt is None else self.spoilt)

    @property
    def total(self) -> int:
        """The number of parts, counts included."""
        return sum(n for _, n in self.parts)

    @cached_property
    def _goal(self) -> float:
        """The relative gap of delta aimed at: finer for short compositions."""
        return self.accuracy or min(5e-7 * max(1.0, self.total / 60), 8e-5)

    def _direction(self, reverse: bool) -> Direction:
        if reverse not in self._directions:
            self._directions[reverse] = Direction(self.parts, self._tables, reverse=reverse, finest=self._goal)
        return self._directions[reverse]

    @cached_property
    def _tables(self) -> tuple[Loss, ...]:
        """The losses of the parts, slow ones as tables: both directions and every grid ask these."""
        return tuple(loss.tabulated(self._goal) for loss, _ in self.parts)

    def _view(self, place: Place, reverse: bool, accuracy: float) -> View:
        """The view at one of the composition's places; what was asked before plays no part in it."""
        key = (reverse and not self.symmetric, accuracy, place)
        if key not in self._views:
            self._views[key] = self._direction(reverse).solve(place, accuracy)
        return self._views[key]

    def _floor(self, reverse: bool) -> Floor:
        reverse = reverse and not self.symmetric
        if reverse not in self._floors:
            self._floors[reverse] = Floor(tuple(zip(self._tables, (n for _, n in self.parts), strict=True)), reverse)
        return self._floors[reverse]

    def _with_certain(self, lower: Floats, upper: Floats, reverse: bool) -> tuple[Floats, Floats]:
        if not self.certain:
            return lower, upper
        low, high = self.certain / ABOVE_128, min(self.certain * ABOVE_128, 1.0)
        if reverse and self.spoilt is not None and self.spoilt > self.certain:
            low = 0.0  # a sampled failure shows fully in the forward direction only
        spoilt = high if self.spoilt is None else min(self.spoilt * ABOVE_128, 1.0)
        return (low + (1 - spoilt) * lower) / ABOVE_128, np.minimum((high + (1 - low) * upper) * ABOVE_128, 1.0)

    def tabulated(self, accuracy: float) -> Loss:
        """Few views for all epsilons: a sample of a composition asks for many."""
        from shapedp.accounting.outline import Outline

        return Outline(self, max(positive("accuracy", accuracy), _SEEN_THROUGH))

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        return self._profile(np.asarray(epsilon, dtype=np.float64), reverse, self._goal)

    @cached_property
    def _pure(self) -> float:
        """An epsilon that all parts together keep to: those of pure parts add up."""
        return math.fsum(n * loss.pure for loss, n in self.parts) * ABOVE_128

    def _profile(self, epsilon: Floats, reverse: bool, accuracy: float) -> tuple[Floats, Floats]:
        return self.through(lambda at: self._nearest(at, reverse, accuracy), epsilon, reverse)

    def through(
        self, bounds: Callable[[Floats], tuple[Floats, Floats]], epsilon: Floats, reverse: bool, every: int = 1
    ) -> tuple[Floats, Floats]:
        """Bounds of views with what answers get: the pure end, `certain`; one in `every` is held against the floor."""
        reverse = boolean("reverse", reverse)
        lower, upper = np.zeros(epsilon.shape), np.zeros(epsilon.shape)
        open_ = epsilon < self._pure
        if open_.any():
            low, upper[open_] = bounds(epsilon[open_])
            some = slice(None, None, every)
            low[some] = np.maximum(low[some], self._floor(reverse).checked(epsilon[open_][some], upper[open_][some]))
            lower[open_] = low
        return self._with_certain(lower, upper, reverse)

    def _nearest(self, epsilon: Floats, reverse: bool, accuracy: float) -> tuple[Floats, Floats]:
        """Bounds without the mass at infinity, each from the view of its place."""
        lower, upper = np.empty(epsilon.shape), np.empty(epsilon.shape)
        centres, widths = self._direction(reverse).places(epsilon)
        places, which = np.unique(centres.ravel() + 1j * widths.ravel(), return_inverse=True)
        for k, place in enumerate(places):
            here = which.reshape(epsilon.shape) == k
            view = self._view((float(place.real), float(place.imag)), reverse, accuracy)
            lower[here], upper[here] = view.bounds(epsilon[here])
        return lower, upper

    def view(self, epsilon: float, *, reverse: bool, accuracy: float) -> View:
        """Bounds on a direction's delta that hold everywhere (without `certain`) and are tight near an epsilon."""
        reverse, near = boolean("reverse", reverse), nonnegative("epsilon", epsilon)
        return self._view(self._place(near, reverse), reverse, min(positive("accuracy", accuracy), 1.0))

    def delta(self, epsilon: float) -> Bracket:
        at = np.array([nonnegative("epsilon", epsilon)])
        return self._larger(lambda *how: Bracket(*(float(end[0]) for end in self._profile(at, *how))))

    def _larger(self, bracket: Callable[[bool, float], Bracket]) -> Bracket:
        """The bracket of the larger direction; the other is only looked at coarsely where that settles it."""
        if self.symmetric:
            return bracket(False, self._goal)
        quick = max(_QUICK, self._goal)
        rough = [bracket(False, quick), bracket(True, quick)]
        first = int(rough[1].upper > rough[0].upper)
        fine = bracket(bool(first), self._goal)
        other = rough[1 - first]
        return fine if other.upper <= fine.lower else fine.max(bracket(not first, self._goal))

    def epsilon(self, delta: float) -> Bracket:
        """The least epsilon for which (epsilon, delta)-DP holds.

        Guarantee: at `upper` the upper bound on delta is at most the delta asked for.
        """
        target = probability("delta", delta)
        if target == 0:
            if self.certain:
                return Bracket(math.inf, math.inf)
            return self._at_zero()
        if self.certain >= target:
            return Bracket(0.0 if target * ABOVE_128**2 > self.certain else math.inf, math.inf)
        found = self._larger(lambda reverse, accuracy: self._epsilon(target, reverse, accuracy))
        upper, move = found.upper, ROUNDINGS_8192
        while math.isfinite(upper) and self.delta(upper).upper > target:  # the last digits of another view
            upper, move = upper * (1 + move) + move * 1e-6, 4 * move
        return Bracket(min(found.lower, upper), upper)

    def _at_zero(self) -> Bracket:
        """The largest losses of the parts add up where they are reached in one direction."""
        ends = [(n, loss, loss.epsilon(0.0)) for loss, n in self.parts]
        below = max(
            sum(n * end.lower for n, loss, end in ends if _reached(loss, end.lower, reverse))
            for reverse in (False, True)
        )
        return Bracket(below / ABOVE_128, sum(n * end.upper for n, _, end in ends) * ABOVE_128)

    def _epsilon(self, target: float, reverse: bool, accuracy: float) -> Bracket:
        """Where a direction's upper bound meets the target, from the views that `delta` asks too.

        A rough view near the target says where to begin; then the root of each view leads to the next one, always
        inside what is still open.
        """
        top = math.inf if self.certain else self._pure
        if math.isfinite(top) and self._floor(reverse).at(np.array([top * _NEAR_PURE]))[0] > target:
            return Bracket(top * _NEAR_PURE, top)
        rough = self._rough(target, reverse)
        if accuracy >= _QUICK:
            return rough
        failing, meeting = 0.0, top
        at = min(rough.upper if math.isfinite(rough.upper) else rough.lower, meeting)
        for turn in range(_MOST_VIEWS):
            place = self._place(at, reverse)
            view = self._view(place, reverse, accuracy)
            reach = 3 * max(self._direction(reverse).spread(at), view.upper.spread)
            root = self._root(view, target, max(at, view.focus) + reach)
            if self._above(view, at) <= target:
                meeting = min(meeting, at)
            else:
                failing = max(failing, at)
            own = self._place(root, reverse) == place and self._above(view, root) <= target
            if own and failing <= root <= meeting:
                meeting = root
                break
            if math.isfinite(meeting) and meeting - failing <= ROUNDINGS_8192 * meeting * 4**turn:
                break
            if failing < root < meeting:
                at = root
            else:
                at = (failing + meeting) / 2 if math.isfinite(meeting) else 2 * failing + view.upper.step
        if meeting == math.inf:
            return Bracket(min(rough.lower, failing), meeting)
        return Bracket(min(self._insufficient_near(view, target, meeting, reverse), meeting), meeting)

    def _rough(self, target: float, reverse: bool) -> Bracket:
        """The same from views of little accuracy that aim at the target; kept, so that it is the same each time."""
        key = (reverse and not self.symmetric, target)
        if key in self._roughs:
            return self._roughs[key]
        accuracy = max(_QUICK, self._goal)
        root = self._direction(reverse).near_delta((target - self.certain) / (1 - self.certain))
        place = self._place(root, reverse)
        for _ in range(_MOST_VIEWS):
            view = self._view(place, reverse, accuracy)
            reach = 3 * view.upper.spread + view.upper.step
            root = self._root(view, target, max(root, view.focus) + reach)
            if abs(root - view.focus) < reach:
                break
            place, before = self._place(root, reverse), place
            if place == before:
                if self._above(view, root) <= target:
                    break
                place = self._place(2 * root + view.upper.step, reverse)  # a view that does not reach far enough
        upper = root if self._above(view, root) <= target else math.inf
        lower = min(self._insufficient_near(view, target, root, reverse), upper)
        self._roughs[key] = Bracket(lower, upper)
        return self._roughs[key]

    def _insufficient_near(self, view: View, target: float, upper: float, reverse: bool) -> float:
        """The largest epsilon found at which delta exceeds the target for certain; 0 where none is seen."""
        floor = self._floor(reverse)

        def below(bound: Callable[[Floats], Floats], epsilon: float) -> float:
            return float(self._with_certain(bound(np.array([epsilon])), np.ones(1), True)[0][0])

        def log_lower(epsilon: float) -> float:
            value = below(view.lower.delta, epsilon)
            return math.log(value) if value else -math.inf

        def seen_from(bottom: float) -> float:
            above = falling_root(lambda x: log_lower(bottom + x), goal, upper - bottom, relative=ROUNDINGS_2048)
            guess = bottom + above
            return last_true_near(lambda e: below(view.lower.delta, e) > target, guess, relative=ROUNDINGS_128)

        goal, bottoms = math.log(target), (max(view.focus - 3 * view.upper.spread, 0.0), 0.0)
        bottom = next((one for one in bottoms if one < upper and log_lower(one) > goal), None)
        found = 0.0
        with contextlib.suppress(SearchError):
            found = 0.0 if bottom is None else seen_from(bottom)
        with contextlib.suppress(SearchError):
            beyond = found + ROUNDINGS_2048 * upper
            found = last_true(lambda e: below(floor.at, e) > target, beyond, upper, relative=ROUNDINGS_2048)
        return min(found, upper)

    def _place(self, epsilon: float, reverse: bool) -> Place:
        centre, width = self._direction(reverse).places(np.array([epsilon]))
        return float(centre[0]), float(width[0])

    def _above(self, view: View, epsilon: float) -> float:
        """A view's upper bound."""
        return float(self._with_certain(np.zeros(1), view.upper.delta(np.array([epsilon])), True)[1][0])

    def _root(self, view: View, target: float, top: float) -> float:
        """The least epsilon up to `top` at which a view's upper bound meets the target, or `top`."""

        def upper(epsilon: float) -> float:
            return self._above(view, epsilon)

        if upper(top) > target:
            return top
        guess = falling_root(lambda e: math.log(upper(e)), math.log(target), top, relative=ROUNDINGS_2048)
        return first_true_near(lambda e: upper(e) <= target, guess, top, relative=ROUNDINGS_128)

    def renyi(self, alpha: float) -> Bracket:
        """Renyi divergences add up."""
        if self.certain:
            raise ValueError("a composition with mass at infinity has no finite Renyi divergence")
        ends = [(n, loss.renyi(alpha)) for loss, n in self.parts]
        lower = sum(n * end.lower for n, end in ends) / ABOVE_128 if self.symmetric else 0.0
        return Bracket(lower, sum(n * end.upper for n, end in ends) * ABOVE_128)


def _reached(loss: Loss, epsilon: float, reverse: bool) -> bool:
    """Whether delta > 0 below an epsilon, as it is in one direction at least, is so in this one."""
    if loss.symmetric:
        return True
    below = np.array([epsilon * BELOW_8192])
    return bool(
        loss.profile(below, reverse=reverse)[0][0] > 0 or not loss.profile(below, reverse=not reverse)[1][0] > 0
    )
