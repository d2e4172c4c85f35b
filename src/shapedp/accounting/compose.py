"""Composition: exact where closed, otherwise on privacy-loss distributions, bracketed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.pld import Problem, View, default_accuracy
from shapedp.boundary.values import boolean
from shapedp.noise.radial import DEVIATIONS
from shapedp.numerics import SearchError, first_true, last_true, last_true_near
from shapedp.numerics.checks import count, nonnegative, positive, probability
from shapedp.privacy import AdjustedLoss, Bracket, GaussianLoss, Loss
from shapedp.privacy.losses.base import Floats
from shapedp.privacy.losses.radial import ReleasedRadialLoss
from shapedp.sensitivity import ADJACENCIES

_QUICK = 0.02
_UP = 1 + 2.0**-46


@dataclass(frozen=True)
class ComposedLoss(Loss):
    """The loss of independent (or adaptively chosen, but fixed beforehand) parts, each with a count.

    Guarantee: lower <= delta <= upper; grid, truncation and rounding errors are all added outward. `accuracy` is the
    relative gap of delta aimed at (finer for short compositions by default). Each answer is computed near the
    epsilon or delta asked for and kept for its neighbourhood. `certain` is the mass of the composition at infinity,
    `spoilt` the probability that some part's failure was drawn, with or without that effect (`certain` by default).
    """

    parts: tuple[tuple[Loss, int], ...]
    accuracy: float | None = None
    certain: float = 0.0
    adjacency: str | None = None
    spoilt: float | None = None
    _views: dict[Any, list[View]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _problems: dict[bool, Problem] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return all(loss.symmetric for loss, _ in self.parts)

    @property
    def total(self) -> int:
        """The number of parts, counts included."""
        return sum(n for _, n in self.parts)

    def _goal(self) -> float:
        return self.accuracy or default_accuracy(self.total)

    def _problem(self, reverse: bool) -> Problem:
        if reverse not in self._problems:
            self._problems[reverse] = Problem(self.parts, self._tables, reverse=reverse)
        return self._problems[reverse]

    @cached_property
    def _tables(self) -> tuple[Loss, ...]:
        """The losses of the parts, slow ones as tables: both directions and every grid ask these."""
        return tuple(loss.tabulated(self._goal()) for loss, _ in self.parts)

    def _view(self, epsilon: float, reverse: bool, accuracy: float) -> View:
        known = self._views.setdefault((reverse and not self.symmetric, accuracy), [])
        near = [view for view in known if view.covers(epsilon)]
        if near:
            return min(near, key=lambda view: abs(view.focus - epsilon))
        known.append(self._problem(reverse).solve(epsilon=epsilon, accuracy=accuracy))
        return known[-1]

    def _with_certain(self, lower: Floats, upper: Floats, reverse: bool) -> tuple[Floats, Floats]:
        if not self.certain:
            return lower, upper
        low, high = self.certain / _UP, min(self.certain * _UP, 1.0)
        if reverse and self.spoilt is not None and self.spoilt > self.certain:
            low = 0.0  # a sampled failure shows fully in the forward direction only
        spoilt = high if self.spoilt is None else min(self.spoilt * _UP, 1.0)
        return (low + (1 - spoilt) * lower) / _UP, np.minimum((high + (1 - low) * upper) * _UP, 1.0)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        return self._profile(np.asarray(epsilon, dtype=np.float64), reverse, self._goal())

    def _profile(self, epsilon: Floats, reverse: bool, accuracy: float) -> tuple[Floats, Floats]:
        lower, upper = np.zeros(epsilon.shape), np.ones(epsilon.shape)
        pure = sum(n * getattr(loss, "pure", math.inf) for loss, n in self.parts) * _UP
        open_ = epsilon < pure
        upper[~open_] = 0.0  # the epsilons of pure parts add up
        while open_.any():
            least = float(epsilon[open_].min())
            view = self._view(least, reverse, accuracy)
            near = open_ & ((epsilon == least) | (epsilon <= view.end))
            lower[near], upper[near] = view.bounds(epsilon[near])
            open_ &= ~near
        return self._with_certain(lower, upper, reverse)

    def delta(self, epsilon: float) -> Bracket:
        at = np.array([nonnegative("epsilon", epsilon)])

        def bracket(reverse: bool, accuracy: float) -> Bracket:
            return Bracket(*(float(end[0]) for end in self._profile(at, reverse, accuracy)))

        return self._larger(bracket)

    def _larger(self, bracket: Callable[[bool, float], Bracket]) -> Bracket:
        """The bracket of the larger direction; the other is only looked at coarsely where that settles it."""
        if self.symmetric:
            return bracket(False, self._goal())
        quick = _QUICK if self._goal() < _QUICK / 4 else self._goal()
        rough = [bracket(False, quick), bracket(True, quick)]
        first = int(rough[1].upper > rough[0].upper)
        fine = bracket(bool(first), self._goal())
        other = rough[1 - first]
        return fine if other.upper <= fine.lower else fine.max(bracket(not first, self._goal()))

    def epsilon(self, delta: float) -> Bracket:
        """The least epsilon for which (epsilon, delta)-DP holds.

        Guarantee: at `upper` the upper bound on delta is at most the delta asked for.
        """
        target = probability("delta", delta)
        if target == 0:
            if self.certain:
                return Bracket(math.inf, math.inf)
            ends = [(n, loss.epsilon(0.0)) for loss, n in self.parts]
            return Bracket(sum(n * end.lower for n, end in ends) / _UP, sum(n * end.upper for n, end in ends) * _UP)
        if self.certain >= target:
            return Bracket(0.0 if target * _UP**2 > self.certain else math.inf, math.inf)
        return self._larger(lambda reverse, accuracy: self._epsilon(target, reverse, accuracy))

    def _epsilon(self, target: float, reverse: bool, accuracy: float) -> Bracket:
        finite = (target - self.certain) / (1 - self.certain)
        view = self._problem(reverse).solve(delta=finite, accuracy=accuracy)
        known = self._views.setdefault((reverse and not self.symmetric, accuracy), [])
        for _ in range(12):
            known.append(view)
            top = max(view.focus + 3 * view.upper.spread, 0.0) + view.upper.step
            bottom = max(view.upper.start, view.lower.start, 0.0) if view.upper.theta > 0 else 0.0
            if bottom and self._ends(view, bottom)[1] <= target:
                view = self._problem(reverse).solve(epsilon=max(bottom - view.upper.spread, 0.0), accuracy=accuracy)
            elif self._ends(view, top)[1] > target:
                view = self._problem(reverse).solve(epsilon=top, accuracy=accuracy)
            else:
                break
        return self._within(view, target, bottom, top)

    def _ends(self, view: View, epsilon: float) -> tuple[float, float]:
        low, high = self._with_certain(*view.bounds(np.array([epsilon])), True)
        return float(low[0]), float(high[0])

    def _within(self, view: View, target: float, bottom: float, top: float) -> Bracket:
        """The epsilon of one view; infinite above and 0 below where the view does not show it."""
        try:
            upper = first_true(lambda e: self._ends(view, e)[1] <= target, bottom, top, relative=2.0**-42)
        except SearchError:
            upper = math.inf
        try:
            lower = last_true(lambda e: self._ends(view, e)[0] > target, bottom, min(upper, top), relative=2.0**-42)
        except SearchError:
            lower = 0.0
        return Bracket(min(lower, upper), upper)

    def renyi(self, alpha: float) -> Bracket:
        """Renyi divergences add up."""
        if self.certain:
            raise ValueError("a composition with mass at infinity has no finite Renyi divergence")
        ends = [(n, loss.renyi(alpha)) for loss, n in self.parts]
        lower = sum(n * end.lower for n, end in ends) / _UP if self.symmetric else 0.0
        return Bracket(lower, sum(n * end.upper for n, end in ends) * _UP)


@dataclass(frozen=True)
class _Larger(Loss):
    """The larger of the two directions of a loss, at each epsilon."""

    base: Loss

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        ends = [self.base.delta(float(one)) for one in epsilon]
        return np.array([end.lower for end in ends]), np.array([end.upper for end in ends])


@dataclass(frozen=True)
class AdjustedComposition(AdjustedLoss):
    """A composition with what its parts add on top; epsilon is searched where the composition puts it."""

    def epsilon(self, delta: float) -> Bracket:
        target = probability("delta", delta)
        room = target - self.failure - 2 * self.total_variation
        if room <= 0:
            return Bracket(0.0, math.inf)
        base = self.base.epsilon(target)
        near, lower = base.lower, 0.0
        if not self.log_ratio:
            with contextlib.suppress(SearchError):
                lower = last_true_near(lambda e: self.delta(e).lower > target, near)
        for share in (1.0, 0.999, 0.9, 0.5, 0.1, 1e-3):
            top = base.upper * 1.001 if share == 1 else self.base.epsilon(room * share).upper
            top += self.log_ratio + 2 * self.slip
            if math.isfinite(top) and self.delta(top).upper <= target:
                return Bracket(lower, first_true(lambda e: self.delta(e).upper <= target, near, top, relative=2.0**-42))
        return Bracket(lower, math.inf)

    def delta(self, epsilon: float) -> Bracket:
        """From the larger direction of the composition: what is added is the same for both."""
        at = nonnegative("epsilon", epsilon)
        if at < self.log_ratio + 2 * self.slip:
            return super().delta(at)
        larger = AdjustedLoss(_Larger(self.base), self.log_ratio, self.failure, self.total_variation, self.slip)
        return larger.delta(at)


@dataclass(frozen=True)
class Pieces:
    """A loss taken apart into what composes on grids and what adds up by itself (of `slip` the squares)."""

    parts: tuple[tuple[Loss, int], ...]
    log_ratio: float = 0.0
    failure: float = 0.0
    total_variation: float = 0.0
    certain: float = 0.0
    spoilt: float = 0.0
    slip: float = 0.0


@singledispatch
def pieces(loss: Loss) -> Pieces:
    """What a loss is made of; register a type here if it holds others."""
    return Pieces(((loss, 1),))


@pieces.register
def _(loss: AdjustedLoss) -> Pieces:
    base = pieces(loss.base)
    return replace(
        base,
        log_ratio=base.log_ratio + loss.log_ratio,
        failure=base.failure + loss.failure,
        total_variation=base.total_variation + loss.total_variation,
        slip=math.hypot(base.slip, loss.slip) * _UP,
    )


@pieces.register
def _(loss: ReleasedRadialLoss) -> Pieces:
    base = pieces(loss.base)
    return replace(
        base,
        total_variation=base.total_variation + loss.missed,
        slip=math.hypot(base.slip, loss.slip) * _UP,
    )


@pieces.register
def _(loss: BareLoss) -> Pieces:
    return Pieces(((replace(loss, failure=0.0), 1),), certain=loss.failure, spoilt=loss.failure)


@pieces.register
def _(loss: ComposedLoss) -> Pieces:
    return Pieces(loss.parts, certain=loss.certain, spoilt=loss.certain if loss.spoilt is None else loss.spoilt)


def adjacency_of(item: Any) -> str | None:
    """The neighbour relation an item was derived under, None where the user vouches for it."""
    found = getattr(item, "adjacency", None) or getattr(getattr(item, "sensitivity", None), "adjacency", None)
    if found is not None and found not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {', '.join(map(repr, ADJACENCIES))}, got {found!r}")
    return found


def loss_from(item: Any) -> Loss:
    """The loss of a mechanism, or a loss itself."""
    found = item if isinstance(item, Loss) else getattr(item, "loss", None)
    if not isinstance(found, Loss):
        raise TypeError(f"a loss, or a mechanism that has one, is expected, got {item!r}")
    return found


def counted(item: Any) -> tuple[Any, int]:
    """(item, count) from either; the one place where a repetition count is read."""
    if isinstance(item, tuple):
        if len(item) != 2:
            raise TypeError(f"an item is a loss, a mechanism or a pair (either, count), got {item!r}")
        return item[0], count("count", item[1])
    return item, 1


def common_adjacency(items: Iterable[Any]) -> str | None:
    """The one neighbour relation of all items; refuses a mixture."""
    found = sorted({name for name in map(adjacency_of, items) if name is not None})
    if len(found) > 1:
        raise ValueError(
            f"one composition cannot mix neighbour relations ({', '.join(found)}): what one person changes differs; "
            "derive every sensitivity under the same adjacency"
        )
    return found[0] if found else None


def compose(items: Iterable[Any], *, closed_forms: bool = True, accuracy: float | None = None) -> Loss:
    """The loss of several releases on the same data: mechanisms, losses, or (either, count) pairs.

    Guarantee: as `ComposedLoss`. Gaussian losses compose to a Gaussian (mu^2 adds up, rounded up); failures and
    total variations add up, and log-ratios shift. A slip of 38 mu stands for noise within a Gaussian distance mu of
    its law, whatever the data: of all releases together mu^2 adds up, and a Gaussian loss exceeds 38 mu + mu^2/2 with
    probability below e^-700. `closed_forms=False` sends everything through the grids.
    The choice of the parts must not depend on earlier answers; a `Ledger` is for that.
    Reference: Dong, Roth and Su 2022, Corollary 3.3; Zhu, Dong and Wang 2022, Theorem 10 (dominating pairs).
    """
    closed_forms = boolean("closed_forms", closed_forms)
    if isinstance(items, Loss | tuple | str | dict) or not isinstance(items, Iterable):
        raise TypeError(f"compose takes a list of losses, mechanisms or (either, count) pairs, got {items!r}")
    pairs = [counted(item) for item in items]
    if not pairs:
        raise ValueError("nothing to compose: give at least one loss or mechanism")
    if accuracy is not None and not 1e-12 <= positive("accuracy", accuracy) < 1:
        raise ValueError(f"accuracy must lie in [1e-12, 1), got {accuracy!r}")
    adjacency = common_adjacency(item for item, _ in pairs)
    merged: dict[Loss, int] = {}
    sums: dict[str, list[float]] = {
        name: [] for name in ("log_ratio", "failure", "total_variation", "certain", "spoilt", "slip")
    }
    for item, times in pairs:
        taken = pieces(loss_from(item))
        for part, inner in taken.parts:
            merged[part] = merged.get(part, 0) + inner * times
        for name in ("log_ratio", "failure", "total_variation"):
            sums[name].append(times * getattr(taken, name))
        for name in ("certain", "spoilt"):
            sums[name].append(times * math.log1p(-getattr(taken, name)))
        sums["slip"].append(times * taken.slip**2)
    log_ratio, failure, total_variation, log_certain, log_clean, squares = (math.fsum(one) for one in sums.values())
    failures = -math.expm1(log_certain), -math.expm1(log_clean)
    base = _base(tuple(merged.items()), failures, closed_forms, accuracy, adjacency)
    if not (log_ratio or failure or total_variation or squares):
        return base
    slip = (math.sqrt(squares) + squares / (2 * DEVIATIONS**2)) * _UP
    failure = failure if slip < 700 else 1.0
    return AdjustedComposition(
        base, log_ratio * _UP, min(failure * _UP, 1.0), min(total_variation * _UP, 1.0), min(slip, 700.0)
    )


def _base(
    parts: tuple[tuple[Loss, int], ...],
    failures: tuple[float, float],
    closed: bool,
    accuracy: float | None,
    adjacency: str | None,
) -> Loss:
    certain, spoilt = failures
    if closed and not certain:
        if all(isinstance(loss, GaussianLoss) for loss, _ in parts):
            gaussians: list[tuple[Any, int]] = list(parts)
            mu = _root_sum_squares([(loss.mu, n) for loss, n in gaussians])
            if all(loss.least is None for loss, _ in gaussians):
                return GaussianLoss(mu)
            known = [(loss.mu if loss.least is None else loss.least, n) for loss, n in gaussians]
            return GaussianLoss(mu, min(_root_sum_squares(known) * (1 - 2.0**-50), mu))
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0]
    return ComposedLoss(parts, accuracy, certain, adjacency, spoilt)


def _root_sum_squares(terms: list[tuple[float, int]]) -> float:
    """sqrt(sum n mu^2), rounded up: never below the exact value, at most two units above."""
    exact = sum((Fraction(mu) ** 2 * n for mu, n in terms), Fraction(0))
    if not exact:
        return 0.0
    try:
        guess = math.sqrt(exact)
    except OverflowError:
        raise ValueError("the composed mu exceeds the range of floats: there is no privacy left to account") from None
    while Fraction(guess) ** 2 < exact:
        guess = math.nextafter(guess, math.inf)
    return guess
