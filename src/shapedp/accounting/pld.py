"""Delta of a composition near one point: choice of tilt and of grid, then two convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shapedp.accounting.aims import FADED, Aim, log_gap
from shapedp.accounting.cumulants import cumulant, total_cumulant, window
from shapedp.accounting.fourier import Convolution, WindowError, convolve
from shapedp.accounting.knots import for_all_tilts, near_masses
from shapedp.accounting.ladder import STEEP, Ladder
from shapedp.accounting.lattices import aligned, lattice_of
from shapedp.numerics import SearchError, SelfCheckError
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import WIDE
from shapedp.privacy.losses.base import Loss
from shapedp.privacy.losses.discrete import DiscreteLoss, bound_masses, support, upper_masses
from shapedp.privacy.losses.masses import Masses

Counted = Sequence[tuple[Loss, int]]
Weighted = list[tuple[Masses, int]]
Place = tuple[float, float]  # an epsilon, and how far from it answers are asked for
NODE_LIMIT = 2**21
_FIRST_NODES = 3000
_LADDER_NODES = 800
_ROUGH_NODES = 2**16  # at most, where only a place to look at is sought
_ROUGH = 1.5e-2  # an accuracy that only says where to look
_QUICK = 0.02
_SLOW_LIMIT = 2**18
_SHARP_LIMIT = 2**18
_MANY_NODES = 2**15  # from here on grids grow slowly
_SMALLEST_STRIDE = 1 / 8  # to the next grid, once the gap of one is known: it often falls faster than expected
_LOOSE = 3.0  # bounds this many times further apart than they should be are sharpened
_ENOUGH = 2e-3  # and to this gap at most
_SHARPENINGS = 4
_HOPELESS = 0.5  # as long as the gap is larger, a finer grid is tried even if the last one did not help
_LADDER_CAP = 64.0
_BEYOND = 20.0  # losses so many times likelier than all others hide


@dataclass(frozen=True, eq=False)
class View:
    """Bounds on delta(eps) of one direction of a composition, tight near `focus`.

    Guarantee: lower <= truth <= upper at every eps; the gap grows away from `focus`.
    """

    lower: Convolution
    upper: Convolution
    focus: float

    def gap(self, reach: float) -> float:
        """How far the bounds are apart, relative to the upper one, up to `reach` from the focus."""
        lower, upper = self.bounds(np.array([max(self.focus - reach, 0.0), self.focus, self.focus + reach]))
        return float(np.max(np.where(upper > max(FADED, 1e-3 * upper[1]), (upper - lower) / upper, 0.0)))

    def bounds(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds on delta."""
        lower, upper = self.lower.delta(epsilon), self.upper.delta(epsilon)
        crossed = lower > upper
        if crossed.any():
            at = int(np.flatnonzero(crossed)[0])
            raise SelfCheckError(
                f"a composition's lower bound {lower.flat[at]!r} exceeds its upper bound {upper.flat[at]!r} at "
                f"epsilon {np.asarray(epsilon).flat[at]!r}"
            )
        return lower, upper


class Direction:
    """One direction of a composition: parts and counts, their lattice and their total count.

    `tables` are the losses of the parts again, or bounds on them, as they are evaluated; `finest` is the least relative
    gap of delta that will be asked for.
    """

    def __init__(self, parts: Counted, tables: Sequence[Loss], *, reverse: bool, finest: float = 1e-6) -> None:
        self.parts = tuple((table, n) for table, (_, n) in zip(tables, parts, strict=True))
        self.reverse = reverse
        self.finest = finest
        self.total = sum(n for _, n in parts)
        found = [lattice_of(loss, table) for (loss, _), table in zip(parts, tables, strict=True)]
        self._smooth = [spacing is None for spacing in found]  # parts without atoms, as far as is seen
        spacings = {spacing for spacing in found if spacing is not None}
        smallest = min(spacings) if spacings else None
        whole = smallest is not None and all(abs(s / smallest - round(s / smallest)) < 1e-12 for s in spacings)
        self.lattice = smallest if whole else None
        self._ladders: dict[float, Ladder] = {}
        self._stages: dict[Place, _Stage] = {}

    @cached_property
    def grid(self) -> float | None:
        """The step of the grid on which a part already lies, where the other parts fit on it too."""
        grids = {loss.upper.step for loss, _ in self.parts if isinstance(loss, DiscreteLoss)}
        step = grids.pop() if len(grids) == 1 else None
        on_grid = (isinstance(loss, DiscreteLoss) for loss, _ in self.parts)
        others = [end for end, own in zip(self._all, on_grid, strict=True) if not own]
        return None if step is None or (others and _width(others) > step * NODE_LIMIT) else step

    def _masses(
        self, step: float, ends: list[tuple[float, float]], guide: tuple[Weighted, Sequence[float]] | None = None
    ) -> tuple[Weighted, Weighted]:
        """Lower and upper masses of every part on a grid, with the counts.

        A guide, masses on a coarser grid and tilts, says where the grid needs all its nodes.
        """
        lower, upper = [], []
        for at, ((loss, n), end) in enumerate(zip(self.parts, ends, strict=True)):
            nodes = _nodes(step, end)
            guided = guide is not None and self._smooth[at]
            knots = near_masses(guide[0][at][0], guide[1], step, *nodes) if guide is not None and guided else None
            bottom, top = bound_masses(loss, step, *nodes, reverse=self.reverse, knots=knots)
            lower.append((bottom, n))
            upper.append((top, n))
        return lower, upper

    def _upper(self, step: float, ends: list[tuple[float, float]], before: Weighted | None) -> Weighted:
        """The upper masses alone, for all tilts."""
        found = []
        for at, ((loss, n), end) in enumerate(zip(self.parts, ends, strict=True)):
            nodes = _nodes(step, end)
            knots = for_all_tilts(before[at][0], step, *nodes) if before is not None and self._smooth[at] else None
            found.append((upper_masses(loss, step, *nodes, reverse=self.reverse, knots=knots), n))
        return found

    def _trim(self, masses: Masses, theta: float, delta: float, accuracy: float, lone: float) -> tuple[float, float]:
        """The range of losses that matters to delta: by the tilted masses on both sides, by u itself at the top.

        What Q has alone, `lone`, is e^x of itself at a loss x < 0 in the curve of the lower masses.
        """
        points, plain = masses.held[0], masses.masses[masses.places]
        with np.errstate(under="ignore"):
            tilted = np.exp(theta * points + masses.held[1] - cumulant(masses, theta)[0])
        small = accuracy * 1e-4 / self.total
        low = int(min(np.searchsorted(np.cumsum(tilted), small), np.searchsorted(np.cumsum(plain), 1e-9)))
        high = tilted.size - int(np.searchsorted(np.cumsum(tilted[::-1]), small))
        heavy = np.cumsum(plain[::-1])[::-1] + masses.infinity > delta * accuracy * 1e-3 / self.total
        high = max(high, int(np.count_nonzero(heavy)) + 1)
        left = math.log(max(delta * accuracy * 1e-3 / self.total, 1e-60) / lone) if lone > 1e-60 else 0.0
        left = max(min(left, float(points[max(low - 1, 0)])), float(points[0]))
        return left, float(points[min(high + 1, points.size - 1)])

    def _ladder(self, epsilon: float) -> Ladder:
        """From a grid that is refined until the variance has settled; without losses far above the octave of eps."""
        cap = _LADDER_CAP * 2.0 ** int(_octave(np.array(epsilon)))
        ends = _capped(self._all, cap)
        cap = cap if ends != self._all else math.inf
        if cap in self._ladders:
            return self._ladders[cap]
        step = self.grid or aligned(_width(ends) / _LADDER_NODES, self.lattice)
        variance, upper = math.inf, None
        while True:
            upper = self._upper(step, ends, upper)
            before, variance = variance, total_cumulant(upper, 0.0)[2]
            if variance > 0.9 * before or self.grid is not None or 8 * _width(ends) / step > _ROUGH_NODES:
                return self._ladders.setdefault(cap, Ladder.of(upper))
            step = aligned(step / 8, self.lattice)

    @cached_property
    def _lone(self) -> list[float]:
        """Of each part what the other law has by itself, next to nothing where its losses end."""
        return [float(loss.profile(np.array([1e5]), reverse=not self.reverse)[1][0]) for loss, _ in self.parts]

    @cached_property
    def _own_gap(self) -> float:
        """How far the parts' own bounds are apart, relatively, at some losses."""
        at = np.append(0.0, np.array([end for _, end in self._all])[:, None] * np.array([1e-3, 1e-2, 0.1, 0.5]))
        gaps = [0.0]
        for loss, _ in self.parts:
            for reverse in (False,) if loss.symmetric else (False, True):  # the other direction: losses below 0
                lower, upper = loss.profile(at, reverse=reverse)
                gaps += ((upper - lower) / np.maximum(upper, 1e-300))[upper > 1e-3 * upper[0]].tolist()
        return max(gaps)

    @cached_property
    def _all(self) -> list[tuple[float, float]]:
        return self._ends(1e-300)

    def _ends(self, tail: float) -> list[tuple[float, float]]:
        return [support(loss, tail, reverse=self.reverse, left_tail=max(tail, 1e-60)) for loss, _ in self.parts]

    def places(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Where views answer for these epsilons, and how wide a place is: a function of the composition alone.

        Multiples of a power of two about as large as the deviation of the losses that decide there.
        """
        quantum = np.ldexp(1.0, np.ceil(np.log2(self.spreads(epsilon))).astype(np.int64))
        return quantum * np.round(epsilon / quantum), quantum

    def spreads(self, epsilon: Floats) -> Floats:
        """The deviations of the losses that decide at these epsilons, about."""
        found, octaves = np.empty(epsilon.shape), _octave(epsilon)
        for octave in np.unique(octaves):
            here = octaves == octave
            found[here] = self._ladder(float(epsilon[here][0])).near(epsilon[here])
        return found

    def spread(self, epsilon: float) -> float:
        """The same at one epsilon."""
        return float(self.spreads(np.array([epsilon]))[0])

    def near_delta(self, delta: float) -> float:
        """About the epsilon at which delta takes a value."""
        at = 0.0
        for _ in range(2):  # far out another ladder is longer
            ladder = self._ladder(at)
            at = float(np.interp(-math.log(delta), -ladder.log_delta, ladder.mean))
        return max(at, 0.0)

    def solve(self, place: Place, accuracy: float) -> View:
        """Bounds that are tight near an epsilon."""
        found = self._rough(place)
        if accuracy < _ROUGH:
            found = self._stage(place, accuracy, found)
        aim, node_limit = found.aim, min(NODE_LIMIT, _ROUGH_NODES) if accuracy >= _ROUGH else NODE_LIMIT
        view = self._first_view(found, self._cap(place), node_limit)
        if self.grid is not None:
            return view
        return self._sharper(view, self._cap(place), accuracy, found.ends, node_limit, aim.steepest)

    def _cap(self, place: Place) -> float:
        """Losses beyond it are merged."""
        return place[0] + place[1] + math.log(_BEYOND * self.total / self.finest)

    def _rough(self, place: Place) -> _Stage:
        """Where every view of a place begins; kept."""
        if place not in self._stages:
            self._stages[place] = self._stage(place, _QUICK, None)
        return self._stages[place]

    def _stage(self, place: Place, accuracy: float, found: _Stage | None) -> _Stage:
        """Masses on a grid so fine that delta near a place is known to a relative accuracy.

        The log-gap of delta is about total (K_upper - K_lower)(theta), and falls with the square of the step: a
        coarse grid measures it, the next one is chosen from it. Where single rare losses rule, K says too little:
        then the bounds themselves are looked at.
        """
        cap, steepest = self._cap(place), 3 * STEEP / place[1]
        limit = _ROUGH_NODES if accuracy >= _ROUGH else NODE_LIMIT
        step, plain = math.inf, False
        if found is None:
            tail = max(_about(self._ladder(place[0]), place[0]) * 1e-25, 1e-300)
            ends = _capped(self._ends(tail), cap)
            step = self.grid or aligned(_width(ends) / _FIRST_NODES, self.lattice)
        else:
            found = found.at(Aim.near(found.upper, place[0], accuracy, steepest), self)
            limit = min(limit, _SLOW_LIMIT) if found.slow else limit
        for _ in range(9):
            if found is not None and not step < found.step:
                step = self._next(found, accuracy, limit)
                if not step < found.step:
                    break
                ends = found.ends
            guide = None if found is None or plain else (found.upper, found.aim.tilts)
            lower, upper = self._masses(step, ends, guide)
            aim = found.aim if found is not None and found.wide else Aim.near(upper, place[0], accuracy, steepest)
            gap = log_gap(lower, upper, aim, cap)
            if found is not None and guide is not None and gap > accuracy / 2 and gap > 3 * found.expected(step):
                plain, (lower, upper) = True, self._masses(step, ends)  # knots left out where masses were hidden
                gap = log_gap(lower, upper, aim, cap)
            if found is not None and gap > 0.8 * found.gap and step < 0.5 * found.step:
                # a finer grid does not help: the parts' own bounds are that far apart, or their atoms lie badly on it
                if self._own_gap > 0.1 * found.gap or 3 * _width(ends) / step > _SLOW_LIMIT:
                    break
                step = aligned(step / 3, self.lattice)
                continue
            if found is not None and 0 < gap < found.gap < math.inf:
                # atoms off the grid: the gap falls with the step only
                slow = math.log(found.gap / gap) < 1.5 * math.log(found.step / step)
                limit = min(limit, _SLOW_LIMIT) if slow else limit
            wide = found.wide if found is not None and found.wide else upper if gap < 0.5 else None
            stage = _Stage(lower, upper, aim, gap, ends, wide, limit == _SLOW_LIMIT)
            found = stage.at(aim, self) if wide is upper else stage
        assert found is not None
        return found

    def _next(self, found: _Stage, accuracy: float, limit: int) -> float:
        """The step of the grid that should do, or the present one where nothing is to be gained."""
        aim = found.aim
        if aim.faint or found.gap <= accuracy / 2 or self.grid is not None:
            return found.step
        _, _, left, right, *_ = window(found.upper, aim.theta, aim.tail_mass)
        least = max(1.05 * (right - left), _width(found.ends)) / limit  # the finest grid that fits
        if found.step <= 1.05 * least:
            return found.step
        finer = self._finer(found.step, found.gap, accuracy / 2, least, _width(found.ends))
        return finer if found.wide is None else max(finer, aligned(found.step * _SMALLEST_STRIDE, self.lattice))

    def trimmed(self, masses: Weighted, aim: Aim) -> list[tuple[float, float]]:
        """The ranges of losses that matter, of each part."""
        variance = total_cumulant(masses, aim.theta)[2]
        # what is left at the far end of the view
        rest = aim.delta * math.exp(max(-1.5 * aim.best * math.sqrt(variance) - 1.2, -600.0))
        return [
            self._trim(part, aim.theta, max(rest, 1e-300), aim.share, lone)
            for (part, _), lone in zip(masses, self._lone, strict=True)
        ]

    def _finer(self, step: float, gap: float, goal: float, least: float, width: float) -> float:
        ratio = 0.9 * math.sqrt(goal / gap) if math.isfinite(gap) else 0.0
        slowest = 1 / 40 if width < _MANY_NODES * step else 1 / 6
        return aligned(max(step * min(max(ratio, slowest), 0.7), least), self.lattice)

    def _first_view(self, found: _Stage, cap: float, node_limit: int) -> View:
        """The composition on the grid found, or on coarser ones that fit."""
        lower, upper = found.lower, found.upper
        for _ in range(6):
            try:
                return _view(lower, upper, cap, found.aim, node_limit)
            except WindowError:
                if self.grid is not None:
                    break
                step = aligned(2 * upper[0][0].step, self.lattice)
                lower, upper = self._masses(step, found.ends, (upper, found.aim.tilts))
        raise SearchError("the composition does not fit on a grid: compose fewer steps or losses of a similar scale")

    def _sharper(
        self, view: View, cap: float, accuracy: float, ends: list[tuple[float, float]], node_limit: int, steepest: float
    ) -> View:
        """Finer grids as long as the bounds are too far apart where they are asked for, and come closer."""
        reach = 0.5 * self.spread(view.focus)
        finest = view.upper.step
        for _ in range(_SHARPENINGS):
            gap, step = view.gap(reach), min(view.upper.step, finest)
            goal = max(accuracy, _ENOUGH)
            if gap <= _LOOSE * goal:
                break
            finer = self._finer(step, gap, goal, _width(ends) / min(node_limit, _SHARP_LIMIT), _width(ends))
            if not finer < 0.8 * step:
                break
            lower, upper = self._masses(finer, ends)
            try:
                following = _view(lower, upper, cap, Aim.near(upper, view.focus, accuracy, steepest), node_limit)
            except WindowError:
                break
            if gap < _HOPELESS and following.gap(reach) > 0.7 * gap:
                if self._own_gap > 0.1 * gap:
                    break
                finest /= 3  # atoms that lie badly on this grid
            else:
                view = following
        return view


@dataclass(frozen=True, eq=False)
class _Stage:
    """Masses of all parts on one grid, how far their bounds are apart, and the ranges on which finer grids lie.

    `wide` are the masses on the whole ranges, from which those that matter were found; `slow`: finer grids help little.
    """

    lower: Weighted
    upper: Weighted
    aim: Aim
    gap: float
    ends: list[tuple[float, float]]
    wide: Weighted | None
    slow: bool

    @property
    def step(self) -> float:
        return self.upper[0][0].step

    def at(self, aim: Aim, direction: Direction) -> _Stage:
        """The same masses with another aim, and the ranges that matter to it."""
        ends = self.ends if self.wide is None else direction.trimmed(self.wide, aim)
        return replace(self, aim=aim, ends=ends)

    def expected(self, step: float) -> float:
        """The gap that a finer grid should have."""
        return max(self.gap, WIDE) * (step / self.step) ** 2 if self.wide is not None else math.inf


def _octave(epsilon: Floats) -> np.ndarray:
    """The logarithm of epsilon/16 to base 2, rounded up; 0 up to 16."""
    mantissa, exponent = np.frexp(np.maximum(epsilon, 16.0) / 16)
    return np.asarray(exponent - (mantissa == 0.5))


def _nodes(step: float, end: tuple[float, float]) -> tuple[int, int]:
    """The first and the last node of a grid over an interval of losses."""
    return min(math.floor(end[0] / step), -1), max(math.ceil(end[1] / step), 1) + 2


def _about(ladder: Ladder, epsilon: float) -> float:
    """About the delta at an epsilon."""
    return math.exp(min(max(float(np.interp(epsilon, ladder.mean, ladder.log_delta)), -700.0), 0.0))


def _capped(ends: list[tuple[float, float]], cap: float) -> list[tuple[float, float]]:
    return [(low, min(high, cap)) for low, high in ends]


def _width(ends: list[tuple[float, float]]) -> float:
    return max(high - low for low, high in ends)


def _view(lower: Weighted, upper: Weighted, cap: float, aim: Aim, node_limit: int) -> View:
    lower = [(part.apart(cap), n) for part, n in lower]
    below, above = (
        convolve(parts, aim.theta, upper=top, tail=aim.tail_mass, node_limit=2 * node_limit)
        for parts, top in ((lower, False), (upper, True))
    )
    return View(below, above, aim.epsilon)
