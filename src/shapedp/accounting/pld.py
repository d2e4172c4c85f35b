"""Delta of a composition near one point: choice of tilt and of grid, then two convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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
from shapedp.accounting.ladder import STEEP, Ladder
from shapedp.numerics import SelfCheckError
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_2, WIDE
from shapedp.privacy.losses.base import Loss
from shapedp.privacy.losses.discrete import DiscreteLoss, bound_masses, coarse_step, support, upper_masses
from shapedp.privacy.losses.masses import Masses

Counted = Sequence[tuple[Loss, int]]
Weighted = list[tuple[Masses, int]]
Place = tuple[float, float]  # an epsilon, and how far from it answers are asked for
NODE_LIMIT = 2**21
_FIRST_NODES = 3000
_LADDER_NODES = 800
_ROUGH_NODES = 2**16  # at most, where only a place to look at is sought
_ROUGH = 1.5e-2  # an accuracy that only says where to look
_SLOW_LIMIT = 2**18
_SHARP_LIMIT = 2**18
_MANY_NODES = 2**15  # from here on grids grow slowly
_LOOSE = 3.0  # bounds this many times further apart than they should be are sharpened
_ENOUGH = 2e-3  # and to this gap at most
_SHARPENINGS = 4
_HOPELESS = 0.5  # as long as the gap is larger, a finer grid is tried even if the last one did not help
_FADED = 1e-300
_FAINT = math.log(_FADED) - 10
_FINER_LATTICE = 16  # a lattice so many times finer than the step asked for is still used
_SECTIONS = 32  # of an interval in which an atom is sought
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
        return float(np.max(np.where(upper > max(_FADED, 1e-3 * upper[1]), (upper - lower) / upper, 0.0)))

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


def _lattice(loss: Loss, table: Loss) -> float | None:
    """The spacing on which a loss has atoms: declared, or its largest value if there is an atom there."""
    if loss.lattice is not None:
        return float(loss.lattice)
    if table is not loss and _last_atom(table, WIDE) is None:
        return None
    return _last_atom(loss, ROUNDINGS_2)


def _last_atom(loss: Loss, relative: float) -> float | None:
    """The largest finite loss, if there is an atom there; what lies at infinity is seen far out."""
    low, high = 0.0, 1e4
    rest = max(float(loss.profile(np.array([high]))[1][0]) * (1 + WIDE), 1e-290)
    while high - low > relative * high:
        between = np.unique(np.linspace(low, high, _SECTIONS + 1)[1:-1])
        between = between[(low < between) & (between < high)]
        if not between.size:
            break
        held = int(np.count_nonzero(loss.profile(between)[0] > (rest if rest > 1e-290 else 0.0)))
        low, high = float(between[held - 1]) if held else low, float(between[held]) if held < between.size else high
    beside = loss.profile(np.array([high * (1 - 1e-7), high * (1 + max(1e-12, relative))]))
    return high if high < 5e3 and beside[0][0] > rest + 1e-12 and beside[1][1] <= rest else None


def _aligned(step: float, lattice: float | None) -> float:
    """A step near the one asked for, on which the atoms of the lattice lie unless that takes many more nodes."""
    if lattice is None or lattice * _FINER_LATTICE < step:
        return coarse_step(step)
    return lattice / math.ceil(lattice / step) if step < lattice else lattice


class Direction:
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
        self._ladders: dict[float, Ladder] = {}

    @cached_property
    def grid(self) -> float | None:
        """The step of the grid on which a part already lies, where the other parts fit on it too."""
        grids = {loss.upper.step for loss, _ in self.parts if isinstance(loss, DiscreteLoss)}
        step = grids.pop() if len(grids) == 1 else None
        on_grid = (isinstance(loss, DiscreteLoss) for loss, _ in self.parts)
        others = [end for end, own in zip(self._all, on_grid, strict=True) if not own]
        return None if step is None or (others and _width(others) > step * NODE_LIMIT) else step

    def _masses(self, step: float, ends: list[tuple[float, float]]) -> tuple[Weighted, Weighted]:
        """Lower and upper masses of every part on a grid, with the counts."""
        lower, upper = [], []
        for (loss, n), end in zip(self.parts, ends, strict=True):
            bottom, top = bound_masses(loss, step, *_nodes(step, end), reverse=self.reverse)
            lower.append((bottom, n))
            upper.append((top, n))
        return lower, upper

    def _upper(self, step: float, ends: list[tuple[float, float]]) -> Weighted:
        """The upper masses alone."""
        return [
            (upper_masses(loss, step, *_nodes(step, end), reverse=self.reverse), n)
            for (loss, n), end in zip(self.parts, ends, strict=True)
        ]

    def _trim(self, masses: Masses, theta: float, delta: float, accuracy: float, lone: float) -> tuple[float, float]:
        """The range of losses that matters to delta: by the tilted masses on both sides, by u itself at the top.

        What Q has alone, `lone`, is e^x of itself at a loss x < 0 in the curve of the lower masses.
        """
        points = masses.losses
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):
            tilted = masses.masses * np.exp(theta * points - cumulant(masses, theta)[0])
        small = accuracy * 1e-4 / self.total
        low = int(min(np.searchsorted(np.cumsum(tilted), small), np.searchsorted(np.cumsum(masses.masses), 1e-9)))
        high = tilted.size - int(np.searchsorted(np.cumsum(tilted[::-1]), small))
        heavy = np.flatnonzero(masses.hockey_stick(points, upper=True) > delta * accuracy * 1e-3 / self.total)
        high = max(high, int(heavy[-1]) + 1 if heavy.size else 0)
        left = math.log(max(delta * accuracy * 1e-3 / self.total, 1e-60) / lone) if lone > 1e-60 else 0.0
        left = max(min(left, float(points[max(low - 1, 0)])), float(points[0]))
        return left, float(points[min(high + 1, points.size - 1)])

    def _ladder(self, epsilon: float) -> Ladder:
        """From a grid that is refined until the variance has settled; without losses far above the octave of eps."""
        cap = _LADDER_CAP * 2.0 ** math.ceil(math.log2(max(epsilon, 16.0) / 16))
        ends = _capped(self._all, cap)
        cap = cap if ends != self._all else math.inf
        if cap in self._ladders:
            return self._ladders[cap]
        step = self.grid or _aligned(_width(ends) / _LADDER_NODES, self.lattice)
        variance = math.inf
        while True:
            upper = self._upper(step, ends)
            before, variance = variance, total_cumulant(upper, 0.0)[2]
            if variance > 0.9 * before or self.grid is not None or 8 * _width(ends) / step > _ROUGH_NODES:
                return self._ladders.setdefault(cap, Ladder.of(upper))
            step = _aligned(step / 8, self.lattice)

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
            lower, upper = loss.profile(at, reverse=self.reverse)
            gaps += ((upper - lower) / np.maximum(upper, 1e-300))[upper > 1e-3 * upper[0]].tolist()
        return max(gaps)

    @cached_property
    def _all(self) -> list[tuple[float, float]]:
        return self._ends(1e-300)

    def _ends(self, tail: float) -> list[tuple[float, float]]:
        return [support(loss, tail, reverse=self.reverse, left_tail=max(tail, 1e-60)) for loss, _ in self.parts]

    def places(self, epsilon: Floats) -> list[Place]:
        """Where views answer for these epsilons: a function of the composition alone.

        Multiples of a power of two about as large as the deviation of the losses that decide there.
        """
        near = [self.spread(float(one)) for one in epsilon.ravel()]
        exponent = np.ceil(np.log2(near)).reshape(epsilon.shape)
        quantum = np.ldexp(1.0, exponent.astype(np.int64))
        return [(float(q * np.round(e / q)), float(q)) for e, q in zip(epsilon.ravel(), quantum.ravel(), strict=True)]

    def spread(self, epsilon: float) -> float:
        """The deviation of the losses that decide at an epsilon, about."""
        return float(self._ladder(epsilon).near(np.array([epsilon]))[0])

    def solve(
        self,
        *,
        place: Place | None = None,
        delta: float | None = None,
        accuracy: float,
        node_limit: int = NODE_LIMIT,
    ) -> View:
        """Bounds that are tight near an epsilon, or near where delta takes a value.

        The log-gap of delta is about total (K_upper - K_lower)(theta), and falls with the square of the step: a
        coarse grid measures it, the next one is chosen from it. Where single rare losses rule, K says too little:
        then the bounds themselves are looked at.
        """
        epsilon, width = (None, 0.0) if place is None else place
        steepest = 3 * STEEP / width if width else math.inf
        node_limit = min(node_limit, _ROUGH_NODES) if accuracy >= _ROUGH else node_limit
        ladder = self._ladder(epsilon or 0.0)
        expected = delta if epsilon is None else _about(ladder, epsilon)
        tail = max((expected or 0.0) * 1e-25, 1e-300)
        cap = math.inf if epsilon is None else epsilon + width + math.log(_BEYOND * self.total / accuracy)
        ends = _capped(self._ends(tail), cap)
        step = self.grid or _aligned(_width(ends) / _FIRST_NODES, self.lattice)
        aim: _Aim | None = None
        known, best = False, math.inf
        chosen: tuple[Weighted, Weighted] | None = None
        for _ in range(9):
            lower, upper = self._masses(step, ends)
            if aim is None or not known:
                aim = _Aim.near(upper, epsilon, delta, accuracy, steepest)
            variance = total_cumulant(upper, aim.theta)[2]
            # near the centre the extra variance counts relative to the whole, hence the second term of the tilt
            near = math.hypot(aim.theta, 1 / math.sqrt(variance)) if variance > 0 else aim.theta
            near = max(aim.theta, calmer_tilt(upper, near))
            gap = _log_gap(lower, upper, near, cap)
            if chosen is not None and gap > 0.8 * best and step < 0.5 * chosen[1][0][0].step:
                # a finer grid does not help: the parts' own bounds are that far apart, or their atoms lie badly on it
                if self._own_gap > 0.1 * best or 3 * _width(ends) / step > _SLOW_LIMIT:
                    break
                step = _aligned(step / 3, self.lattice)
                continue
            if chosen is not None and 0 < gap < best < math.inf:
                before = chosen[1][0][0].step
                if math.log(best / gap) < 1.5 * math.log(before / step):
                    node_limit = min(node_limit, _SLOW_LIMIT)  # atoms off the grid: the gap falls with the step only
            chosen, best = (lower, upper), gap
            if not known and gap < 0.5:
                known = True
                # what is left at the far end of the view
                rest = aim.delta * math.exp(max(-1.5 * aim.best * math.sqrt(variance) - 1.2, -600.0))
                ends = [
                    self._trim(part, aim.theta, max(rest, 1e-300), aim.share, lone)
                    for (part, _), lone in zip(upper, self._lone, strict=True)
                ]
            _, _, left, right, *_ = window(upper, aim.theta, aim.tail_mass)
            least = max(1.05 * (right - left), _width(ends)) / node_limit  # the finest grid that fits
            if aim.faint or gap <= accuracy / 2 or step <= 1.05 * least or self.grid is not None:
                break
            following = self._finer(step, gap, accuracy / 2, least, _width(ends))
            if not following < step:
                break
            step = following
        assert chosen is not None
        view = self._first_view(chosen, cap, _Aim.near(chosen[1], epsilon, delta, accuracy, steepest), ends, node_limit)
        return view if self.grid is not None else self._sharper(view, cap, accuracy, ends, node_limit, steepest)

    def _finer(self, step: float, gap: float, goal: float, least: float, width: float) -> float:
        ratio = 0.9 * math.sqrt(goal / gap) if math.isfinite(gap) else 0.0
        slowest = 1 / 40 if width < _MANY_NODES * step else 1 / 6
        return _aligned(max(step * min(max(ratio, slowest), 0.7), least), self.lattice)

    def _first_view(
        self,
        chosen: tuple[Weighted, Weighted],
        cap: float,
        aim: _Aim,
        ends: list[tuple[float, float]],
        node_limit: int,
    ) -> View:
        """The composition on the grid chosen, or on coarser ones that fit."""
        lower, upper = chosen
        for _ in range(6):
            try:
                return _view(lower, upper, cap, aim, node_limit)
            except WindowError:
                if self.grid is not None:
                    break
                lower, upper = self._masses(_aligned(2 * upper[0][0].step, self.lattice), ends)
        raise ArithmeticError(
            "the composition does not fit on a grid: compose fewer steps or losses of a similar scale"
        )

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
                following = _view(lower, upper, cap, _Aim.near(upper, view.focus, None, accuracy, steepest), node_limit)
            except WindowError:
                break
            if gap < _HOPELESS and following.gap(reach) > 0.7 * gap:
                if self._own_gap > 0.1 * gap:
                    break
                finest /= 3  # atoms that lie badly on this grid
            else:
                view = following
        return view


@dataclass(frozen=True)
class _Aim:
    """Where a view is to be tight: the tilt and the best one, epsilon and delta there.

    `tail_mass` may wrap around, `share` of the tilted masses may be cut off; `faint`: delta is next to the least float,
    so that finer grids show nothing.
    """

    theta: float
    best: float
    epsilon: float
    delta: float
    tail_mass: float
    share: float
    faint: bool

    @classmethod
    def near(
        cls, upper: Weighted, epsilon: float | None, delta: float | None, accuracy: float, steepest: float
    ) -> _Aim:
        """From the masses of a composition, and the epsilon or the delta asked for."""
        best = tilt_for_mean(upper, epsilon) if delta is None else tilt_for_delta(upper, delta)  # type: ignore[arg-type]
        best = min(best, steepest)
        k, mean, variance = total_cumulant(upper, best)
        if delta is None:
            delta = math.exp(min(max(saddle(k, mean, variance, best), -650.0), 0.0))
        focus = mean if epsilon is None else epsilon
        theta = calmer_tilt(upper, best)
        # a tilt short of the best leaves the focus in the tail: what wraps around must be rarer by as much
        short = total_cumulant(upper, theta)[0] - theta * focus - (k - best * focus)
        share = math.exp(-max(short, 0.0))
        tail_mass = max(min(accuracy * 1e-5, 1e-9) * share, 1e-15)
        lost = math.fsum(n * part.infinity for part, n in upper)
        faint = k - best * focus < _FAINT and lost < _FADED  # by Chernoff's bound
        return cls(theta, best, focus, delta, tail_mass, max(min(accuracy, 0.1) * share, 1e-12), faint)


def _log_gap(lower: Weighted, upper: Weighted, theta: float, cap: float) -> float:
    """How far the cumulants are apart, losses clipped where those of lower masses beyond the cap were merged."""
    clipped = []
    for (low, n), (high, _) in zip(lower, upper, strict=True):
        kept = low.apart(cap)
        pair = (low, high) if kept is low else (low.clipped(kept.span[1]), high.clipped(kept.span[1]))
        clipped.append((pair, n))
    ends = [total_cumulant([(pair[side], n) for pair, n in clipped], theta)[0] for side in (0, 1)]
    return abs(ends[1] - ends[0])


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


def _view(lower: Weighted, upper: Weighted, cap: float, aim: _Aim, node_limit: int) -> View:
    lower = [(part.apart(cap), n) for part, n in lower]
    below, above = (
        convolve(parts, aim.theta, upper=top, tail=aim.tail_mass, node_limit=2 * node_limit)
        for parts, top in ((lower, False), (upper, True))
    )
    return View(below, above, aim.epsilon)
