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
        coarse grid measures it, the next one is chosen from it.
        """
        tail = 1e-50 if delta is None else max(delta * 1e-25, 1e-300)
        ends = [support(loss, tail, reverse=self.reverse, left_tail=max(tail, 1e-60)) for loss, _ in self.parts]
        step = self.grid or _aligned(max(high - low for low, high in ends) / _FIRST_NODES, self.lattice)
        theta, best_tilt, focus, aim, tail_mass = 0.0, 0.0, 0.0, 0.0, 1e-15
        known, best = False, math.inf
        chosen: tuple[Weighted, Weighted] | None = None
        for _ in range(9):
            lower, upper = self._masses(step, ends)
            if not known:
                best_tilt = tilt_for_mean(upper, epsilon) if delta is None else tilt_for_delta(upper, delta)  # type: ignore[arg-type]
                k, mean, variance = total_cumulant(upper, best_tilt)
                aim = math.exp(min(max(saddle(k, mean, variance, best_tilt), -650.0), 0.0)) if delta is None else delta
                focus = mean if epsilon is None else epsilon
                theta = calmer_tilt(upper, best_tilt)
                # a tilt short of the best leaves the focus in the tail: what wraps around must be rarer by as much
                short = total_cumulant(upper, theta)[0] - theta * focus - (k - best_tilt * focus)
                tail_mass = max(min(accuracy / 1000, 1e-4) * math.exp(-max(short, 0.0)), 1e-15)
            k, mean, variance = total_cumulant(upper, theta)
            # near the centre the extra variance counts relative to the whole, hence the second term of the tilt
            near = math.hypot(theta, 1 / math.sqrt(variance)) if variance > 0 else theta
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
                aim = max(aim * math.exp(max(-1.5 * best_tilt * math.sqrt(variance) - 1.2, -600.0)), 1e-300)
                ends = [self._trim(masses, theta, aim, tail_mass * 1000) for masses, _ in upper]
            _, _, left, right, *_ = window(upper, theta, tail_mass)
            least = max(1.05 * (right - left), max(high - low for low, high in ends)) / node_limit
            if gap <= accuracy / 2 or step <= 1.05 * least or self.grid is not None:
                break
            ratio = 0.9 * math.sqrt(accuracy / (2 * gap)) if math.isfinite(gap) else 0.0
            following = _aligned(max(step * min(max(ratio, 1 / 40), 0.7), least), self.lattice)
            if not following < step:
                break
            step = following
        assert chosen is not None
        lower, upper = chosen
        step = upper[0][0].step
        for _ in range(6):
            try:
                return View(
                    convolve(lower, theta, upper=False, tail=tail_mass, node_limit=2 * node_limit),
                    convolve(upper, theta, upper=True, tail=tail_mass, node_limit=2 * node_limit),
                    focus,
                )
            except WindowError:
                if self.grid is not None:
                    break
                step = _aligned(2 * step, self.lattice)
                lower, upper = self._masses(step, ends)
        raise ArithmeticError(
            "the composition does not fit on a grid: compose fewer steps or losses of a similar scale"
        )
