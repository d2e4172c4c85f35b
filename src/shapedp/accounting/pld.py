"""Delta and epsilon of a composition near one point: choice of tilt and of grid, then two convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapedp.accounting.fourier import (
    Convolution,
    WindowError,
    calmer_tilt,
    convolve,
    cumulant,
    saddle,
    tilt_for_delta,
    tilt_for_mean,
    total_cumulant,
    window,
)
from shapedp.privacy.losses.base import Floats, Loss
from shapedp.privacy.losses.discrete import DiscreteLoss, Masses, bound_masses, coarse_step, support

Counted = Sequence[tuple[Loss, int]]
Weighted = list[tuple[Masses, int]]
NODE_LIMIT = 2**21
_FIRST_NODES = 3000
_SLOW_LIMIT = 2**18
_LOOSE = 3.0  # bounds this many times further apart than they should be are sharpened
_ENOUGH = 2e-3  # and to this gap at most
_SHARPENINGS = 4
_SCAN = 400
_FADED = 1e-40


@dataclass(frozen=True, eq=False)
class View:
    """Bounds on delta(eps) of one direction of a composition, tight near `focus`.

    Guarantee: lower <= truth <= upper at every eps; the gap grows away from `focus`.
    """

    lower: Convolution
    upper: Convolution
    focus: float

    @property
    def end(self) -> float:
        """The largest eps at which the bounds are still tight."""
        return self.focus + 1.5 * self.upper.spread

    def covers(self, epsilon: float) -> bool:
        """Whether the bounds are still tight at eps."""
        low = max(self.upper.centre, self.focus - 3 * self.upper.spread) - 1.5 * self.upper.spread
        return (self.upper.theta == 0 or low <= epsilon) and epsilon <= self.end

    def gap(self, delta: float | None) -> float:
        """How far the bounds are apart, relative to the upper one: at the focus, or where it meets a delta."""
        at = np.array([self.focus])
        if delta is not None:
            points = np.linspace(max(self.upper.start, 0.0), self.focus + 3 * self.upper.spread, _SCAN)
            met = np.flatnonzero(self.upper.delta(points) <= delta)
            at = points[met[:1]] if met.size else points[-1:]
        lower, upper = (float(end[0]) for end in self.bounds(at))
        return (upper - lower) / upper if upper > _FADED else 0.0

    def bounds(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds on delta."""
        upper = self.upper.delta(epsilon)
        return np.minimum(self.lower.delta(epsilon), upper), upper


def default_accuracy(total: int) -> float:
    """The relative gap of delta aimed at: finer for short compositions."""
    return min(5e-7 * max(1.0, total / 60), 8e-5)


def _lattice(loss: Loss, table: Loss) -> float | None:
    """The spacing on which a loss has atoms: declared, or its largest value if there is an atom there."""
    declared = getattr(loss, "lattice", None)
    if declared is not None:
        return float(declared)
    if table is not loss and _last_atom(table, 2.0**-30) is None:
        return None
    return _last_atom(loss, 2.0**-52)


def _last_atom(loss: Loss, relative: float) -> float | None:
    low, high = 0.0, 1e4
    if loss.profile(np.array([high]))[1][0] > 1e-290:
        return None
    while high - low > relative * high:
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        if loss.profile(np.array([middle]))[0][0] > 0:
            low = middle
        else:
            high = middle
    beside = loss.profile(np.array([high * (1 - 1e-7), high * (1 + max(1e-12, relative))]))
    return high if beside[0][0] > 1e-12 and beside[1][1] <= 1e-290 else None


def _aligned(step: float, lattice: float | None) -> float:
    if lattice is None:
        return coarse_step(step)
    return lattice / math.ceil(lattice / step) if step < lattice else lattice


class Problem:
    """One direction of a composition: parts and counts, their lattice and their total count.

    `tables` are the losses of the parts again, or bounds on them, as they are evaluated.
    """

    def __init__(self, parts: Counted, tables: Sequence[Loss], *, reverse: bool) -> None:
        self.parts = tuple((table, n) for table, (_, n) in zip(tables, parts, strict=True))
        self.reverse = reverse
        self.total = sum(n for _, n in parts)
        found = (_lattice(loss, table) for (loss, _), table in zip(parts, tables, strict=True))
        spacings = {spacing for spacing in found if spacing is not None}
        smallest = min(spacings) if spacings else None
        whole = smallest is not None and all(abs(s / smallest - round(s / smallest)) < 1e-12 for s in spacings)
        self.lattice = smallest if whole else None
        grids = {loss.lattice for loss, _ in parts if isinstance(loss, DiscreteLoss)}
        self.grid = grids.pop() if len(grids) == 1 else None  # a part that already lies on a grid fixes it

    def _masses(self, step: float, ends: list[tuple[float, float]]) -> tuple[Weighted, Weighted]:
        """Lower and upper masses of every part on a grid, with the counts."""
        lower, upper = [], []
        for (loss, n), (low, high) in zip(self.parts, ends, strict=True):
            first, last = min(math.floor(low / step), -1), max(math.ceil(high / step), 1) + 2
            bottom, top = bound_masses(loss, step, first, last, reverse=self.reverse)
            lower.append((bottom, n))
            upper.append((top, n))
        return lower, upper

    def _trim(self, masses: Masses, theta: float, delta: float, accuracy: float) -> tuple[float, float]:
        """The range of losses that matters to delta: by the tilted masses on both sides, by u itself at the top."""
        points = masses.losses
        with np.errstate(under="ignore"):
            tilted = masses.masses * np.exp(theta * points - cumulant(masses, theta)[0])
        small = accuracy * 1e-4 / self.total
        low = int(min(np.searchsorted(np.cumsum(tilted), small), np.searchsorted(np.cumsum(masses.masses), 1e-9)))
        high = tilted.size - int(np.searchsorted(np.cumsum(tilted[::-1]), small))
        heavy = np.flatnonzero(masses.hockey_stick(points, upper=True) > delta * accuracy * 1e-3 / self.total)
        high = max(high, int(heavy[-1]) + 1 if heavy.size else 0)
        return float(points[max(low - 1, 0)]), float(points[min(high + 1, points.size - 1)])

    def solve(
        self, *, epsilon: float | None = None, delta: float | None = None, accuracy: float, node_limit: int = NODE_LIMIT
    ) -> View:
        """Bounds that are tight near an epsilon, or near where delta takes a value.

        The log-gap of delta is about total (K_upper - K_lower)(theta), and falls with the square of the step: a
        coarse grid measures it, the next one is chosen from it. Where single rare losses rule, K says too little:
        then the bounds themselves are looked at.
        """
        tail = 1e-50 if delta is None else max(delta * 1e-25, 1e-300)
        whole = [support(loss, tail, reverse=self.reverse, left_tail=max(tail, 1e-60)) for loss, _ in self.parts]
        ends = whole
        step = self.grid or _aligned(_width(ends) / _FIRST_NODES, self.lattice)
        aim: _Aim | None = None
        known, best = False, math.inf
        chosen: tuple[Weighted, Weighted] | None = None
        for _ in range(9):
            lower, upper = self._masses(step, ends)
            if aim is None or not known:
                aim = _Aim.near(upper, epsilon, delta, accuracy)
            variance = total_cumulant(upper, aim.theta)[2]
            # near the centre the extra variance counts relative to the whole, hence the second term of the tilt
            near = math.hypot(aim.theta, 1 / math.sqrt(variance)) if variance > 0 else aim.theta
            gap = abs(total_cumulant(upper, near)[0] - total_cumulant(lower, near)[0])
            if chosen is not None and gap > 0.8 * best and step < 0.5 * chosen[1][0][0].step:
                break  # a finer grid no longer helps: the parts' own bounds are that far apart
            if chosen is not None and 0 < gap < best < math.inf:
                before = chosen[1][0][0].step
                if math.log(best / gap) < 1.5 * math.log(before / step):
                    node_limit = min(node_limit, _SLOW_LIMIT)  # atoms off the grid: the gap falls with the step only
            chosen, best = (lower, upper), gap
            if not known and gap < 0.5:
                known = True
                # what is left at the far end of the view
                left = aim.delta * math.exp(max(-1.5 * aim.best * math.sqrt(variance) - 1.2, -600.0))
                ends = [self._trim(part, aim.theta, max(left, 1e-300), aim.tail_mass * 1000) for part, _ in upper]
            least = _least_step(upper, aim, ends, node_limit)
            if gap <= accuracy / 2 or step <= 1.05 * least or self.grid is not None:
                break
            following = self._finer(step, gap, accuracy / 2, least)
            if not following < step:
                break
            step = following
        assert chosen is not None
        assert aim is not None
        view = self._first_view(chosen, aim, ends, node_limit)
        return view if self.grid is not None else self._sharper(view, epsilon, delta, accuracy, whole, node_limit)

    def _finer(self, step: float, gap: float, goal: float, least: float) -> float:
        ratio = 0.9 * math.sqrt(goal / gap) if math.isfinite(gap) else 0.0
        return _aligned(max(step * min(max(ratio, 1 / 40), 0.7), least), self.lattice)

    def _first_view(
        self, chosen: tuple[Weighted, Weighted], aim: _Aim, ends: list[tuple[float, float]], node_limit: int
    ) -> View:
        """The composition on the grid chosen, or on coarser ones that fit."""
        lower, upper = chosen
        for _ in range(6):
            try:
                return _view(lower, upper, aim, node_limit)
            except WindowError:
                if self.grid is not None:
                    break
                lower, upper = self._masses(_aligned(2 * upper[0][0].step, self.lattice), ends)
        raise ArithmeticError(
            "the composition does not fit on a grid: compose fewer steps or losses of a similar scale"
        )

    def _sharper(
        self,
        view: View,
        epsilon: float | None,
        delta: float | None,
        accuracy: float,
        ends: list[tuple[float, float]],
        node_limit: int,
    ) -> View:
        """Finer grids as long as the bounds are too far apart where they are asked for, and come closer."""
        for _ in range(_SHARPENINGS):
            gap, step = view.gap(delta), view.upper.step
            goal = max(accuracy, _ENOUGH)
            if gap <= _LOOSE * goal:
                break
            lower, upper = self._masses(self._finer(step, gap, goal, _width(ends) / node_limit), ends)
            if not upper[0][0].step < 0.8 * step:
                break
            try:
                following = _view(lower, upper, _Aim.near(upper, epsilon, delta, accuracy), node_limit)
            except WindowError:
                break
            if following.gap(delta) > 0.7 * gap:
                break
            view = following
        return view


@dataclass(frozen=True)
class _Aim:
    """Where a view is to be tight: the tilt and the best one, epsilon and delta there, what may wrap around."""

    theta: float
    best: float
    epsilon: float
    delta: float
    tail_mass: float

    @classmethod
    def near(cls, upper: Weighted, epsilon: float | None, delta: float | None, accuracy: float) -> _Aim:
        """From the masses of a composition, and the epsilon or the delta asked for."""
        best = tilt_for_mean(upper, epsilon) if delta is None else tilt_for_delta(upper, delta)  # type: ignore[arg-type]
        k, mean, variance = total_cumulant(upper, best)
        if delta is None:
            delta = math.exp(min(max(saddle(k, mean, variance, best), -650.0), 0.0))
        focus = mean if epsilon is None else epsilon
        theta = calmer_tilt(upper, best)
        # a tilt short of the best leaves the focus in the tail: what wraps around must be rarer by as much
        short = total_cumulant(upper, theta)[0] - theta * focus - (k - best * focus)
        return cls(theta, best, focus, delta, max(min(accuracy / 1000, 1e-4) * math.exp(-max(short, 0.0)), 1e-15))


def _width(ends: list[tuple[float, float]]) -> float:
    return max(high - low for low, high in ends)


def _least_step(upper: Weighted, aim: _Aim, ends: list[tuple[float, float]], node_limit: int) -> float:
    """The finest grid that fits."""
    _, _, left, right, *_ = window(upper, aim.theta, aim.tail_mass)
    return max(1.05 * (right - left), _width(ends)) / node_limit


def _view(lower: Weighted, upper: Weighted, aim: _Aim, node_limit: int) -> View:
    below, above = (
        convolve(parts, aim.theta, upper=top, tail=aim.tail_mass, node_limit=2 * node_limit)
        for parts, top in ((lower, False), (upper, True))
    )
    return View(below, above, aim.epsilon)
