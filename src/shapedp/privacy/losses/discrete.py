"""A privacy loss on a grid, bounded from both sides to second order in the grid step.

Per direction let k = e^eps and u(k) = E_Q[(r - k)_+], r = dP/dQ: convex, decreasing, u(0) = 1. A polygon above u
with knots on the grid belongs to a pair that dominates (P, Q); a polygon below u to one that is dominated. The
P-mass at a knot is k times the change of slope. Everything is done on the excess w = u - (1 - k)_+, which is
e^eps H(Q, P; -eps) for eps < 0: same changes of slope away from k = 1, and no cancellation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, positive
from shapedp.numerics.outward import ROUNDINGS_4, ROUNDINGS_8, ROUNDINGS_8192, WIDE, WIDER
from shapedp.privacy.losses.base import Loss
from shapedp.privacy.losses.masses import Masses

_NEAREST, _FARTHEST = 1e-12, 1e5  # where the end of a loss is sought
_SUB = 4  # sub-nodes per cell: they bound how far u sags below a chord, by convexity alone
_TINY = 5e-324
_FEW = 4  # concave knots: then their tangents are looked for
_LOWERINGS = 40  # of the knot at k = 1
_SHIFT = ROUNDINGS_8192
NODE_LIMIT = 2**22
_WIDEST = 600.0  # e^step is a float


def excess(
    loss: Loss, epsilon: Floats, *, reverse: bool, shift: float = 0.0, move: float = 0.0
) -> tuple[Floats, Floats]:
    """Bounds on w = u - (1 - e^eps)_+ of the loss L + shift at sorted eps, each eps known to a relative `move`.

    u of L + s is u(k e^-s): for k < 1 its excess is (1 - e^-s) k + w(k e^-s).
    """
    split = int(np.searchsorted(epsilon, 0.0))
    above, below = epsilon[split:], -epsilon[:split]
    factor = np.exp(-below)
    if not shift and not move:
        (low, high), (back_low, back_high) = (
            loss.profile(above, reverse=reverse),
            loss.profile(below, reverse=not reverse),
        )
    else:
        low = loss.hockey_stick(above * (1 + move) - shift, reverse=reverse)[0]
        high = loss.hockey_stick(above * (1 - move) - shift, reverse=reverse)[1]
        gain = -math.expm1(-shift)
        back_low = gain + (1 - gain) * loss.profile(below * (1 + move) + shift, reverse=not reverse)[0]
        back_high = gain + (1 - gain) * loss.profile(below * (1 - move) + shift, reverse=not reverse)[1]
    lower = np.concatenate([back_low * factor * (1 - ROUNDINGS_8), low])
    upper = np.concatenate([back_high * factor * (1 + ROUNDINGS_8), high])
    return np.minimum(lower, upper), upper


def _slope_changes(index: np.ndarray, w: Floats, step: float, at: np.ndarray) -> tuple[Floats, Floats]:
    """P-mass at some knots of the polygon through (k, w), flat beyond the last and from (0, 0), and its error."""
    before, after = np.maximum(at - 1, 0), np.minimum(at + 1, index.size - 1)
    here, value = index[at], w[at]
    with np.errstate(divide="ignore", invalid="ignore"):
        left = (value - w[before]) / -np.expm1((index[before] - here) * step)
        right = (w[after] - value) / np.expm1((index[after] - here) * step)
    left[at == 0] = w[0]
    right[at == index.size - 1] = 0.0
    mass = right - left
    error = ROUNDINGS_8 * (np.abs(right) + np.abs(left)) + _TINY
    kink = here == 0
    mass[kink] += 1.0
    error[kink] += ROUNDINGS_8
    return mass, error


def _all_slope_changes(index: np.ndarray, w: Floats, step: float) -> tuple[Floats, Floats]:
    """The same at all knots, most of which are one step apart."""
    gap, rise = np.diff(index), np.diff(w)
    far = np.flatnonzero(gap != 1)
    up, down = np.full(gap.size, np.expm1(step)), np.full(gap.size, -np.expm1(-step))
    up[far], down[far] = np.expm1(gap[far] * step), -np.expm1(-gap[far] * step)
    left, right = np.concatenate([w[:1], rise / down]), np.append(rise / up, 0.0)
    mass, error = right - left, ROUNDINGS_8 * (np.abs(right) + np.abs(left)) + _TINY
    kink = index == 0
    mass[kink] += 1.0
    error[kink] += ROUNDINGS_8
    return mass, error


def _convex(index: np.ndarray, w: Floats, step: float, *, keep_last: bool) -> tuple[np.ndarray, Floats, Floats, Floats]:
    """Knots of the greatest convex minorant, up to rounding: index, w, mass, error of the mass.

    A run of concave knots lies above its chord, so all of it goes at once; of knots whose sign rounding hides every
    other one goes; where few are left, all goes that lies above a tangent. The knot at k = 1 stays and is lowered
    instead: above a loss (`keep_last`) never below its chord, below a loss until rounding cannot hide that it is
    convex. Only neighbours of what changed are computed anew.
    """
    w, lowerings = w.copy(), 0
    mass, error = _all_slope_changes(index, w, step)
    zero = int(np.searchsorted(index, 0))
    kink = zero < index.size and index[zero] == 0
    for turn in range(80):
        suspect = np.flatnonzero(mass <= error)
        if keep_last and suspect.size and suspect[-1] == index.size - 1:
            suspect = suspect[:-1]
        concave = mass[suspect] < -error[suspect]
        changed = np.zeros(index.size, dtype=bool)
        if kink:
            here = suspect == zero
            if (here & (concave | (not keep_last))).any() and lowerings < _LOWERINGS:
                lowerings += 1
                gain = 1 / float(np.expm1((index[zero + 1] - index[zero]) * step)) if zero + 1 < index.size else 0.0
                loss = 1 / -math.expm1(-(index[zero] - index[zero - 1]) * step) if zero else 1.0
                aim = -0.5 * error[zero] if keep_last else 2.0**lowerings * error[zero]
                lowered = w[zero] + (mass[zero] - aim) / (gain + loss)
                if keep_last and lowered == w[zero]:
                    lowerings = _LOWERINGS
                w[zero] = lowered if keep_last else min(lowered, math.nextafter(w[zero], -math.inf))
                changed[max(zero - 1, 0) : zero + 2] = True
            suspect, concave = suspect[~here], concave[~here]
        drop = suspect[concave | (suspect % 2 == turn % 2)]
        if drop.size:
            kept = np.ones(index.size, dtype=bool)
            kept[drop] = False
            if np.count_nonzero(concave) <= _FEW:
                reach = 64 << min(turn, 12)
                for knot in suspect[concave]:
                    kept[_above_tangents(index, w, step, int(knot), zero if kink else None, reach)] = False
                drop = np.flatnonzero(~kept)
            changed[:-1] |= ~kept[1:]
            changed[1:] |= ~kept[:-1]
            zero -= int(np.searchsorted(drop, zero))
            index, w, mass, error, changed = index[kept], w[kept], mass[kept], error[kept], changed[kept]
        elif not suspect.size and not changed.any():
            break
        at = np.flatnonzero(changed)
        mass[at], error[at] = _slope_changes(index, w, step, at)
    return index, w, mass, error


def _above_tangents(index: np.ndarray, w: Floats, step: float, knot: int, kink: int | None, reach: int) -> slice:
    """The run of knots around a concave one that lie above the tangents from the two knots beside it.

    It ends before the kink, and `reach` knots away at most.
    """
    begin, end = knot, knot + 1
    if knot > 0:
        stop = index.size - 1 if kink is None or knot > kink else kink
        ahead = np.arange(knot, min(knot + reach, stop) + 1)
        slope = (w[ahead] - w[knot - 1]) / np.expm1((index[ahead] - index[knot - 1]) * step)
        end = max(knot + int(np.argmin(slope)), end)
    if knot + 1 < index.size:
        start = 0 if kink is None or knot < kink else kink
        behind = np.arange(max(knot - reach, start), knot + 1)
        slope = (w[knot + 1] - w[behind]) / -np.expm1((index[behind] - index[knot + 1]) * step)
        begin = min(int(behind[np.argmax(slope)]) + 1, begin)
    return slice(begin, end)


def _upper(step: float, first: int, last: int, nodes: Floats) -> Masses:
    index, w, mass, error = _convex(np.arange(first, last + 1), nodes, step, keep_last=True)
    dense = np.zeros(last - first + 1)
    dense[index - first] = np.maximum((mass + error) * (1 + ROUNDINGS_8), 0.0)
    return Masses(step, first, dense, float(w[-1]))


def _sagitta(lower: Floats, upper: Floats, first: int, step: float) -> tuple[Floats, Floats]:
    """Nodes of u from below, and how far u may sag below the chord of each cell.

    `lower`, `upper` sit at the sub-nodes from one before `first` to one after the last node. Inside a sub-cell a
    convex u lies above the extensions of both neighbouring chords: the sagitta is at most a b/(a + b), with a and b
    the amounts by which the neighbours' slopes differ, times the length.
    """
    fine = step / _SUB
    rise = np.diff(lower)
    grow = math.exp(fine)
    a = rise[1:-1] - rise[:-2] * grow
    b = rise[2:] / grow - rise[1:-1]
    zero = -first * _SUB  # the sub-cell that starts at k = 1
    if 0 <= zero < a.size:
        a[zero] += math.expm1(fine)
    if 0 <= zero - 1 < b.size:
        b[zero - 1] += -math.expm1(-fine)
    a, b = np.maximum(a, 0.0), np.maximum(b, 0.0)
    total = a + b
    local = a * (b / np.where(total > 0, total, 1.0))  # a b may underflow
    inner = lower[1:-1]
    ends = inner[::_SUB].copy()
    cells, chord = [inner[j:-1:_SUB] for j in range(_SUB)] + [ends[1:]], np.diff(ends)  # by place within a cell
    weight = np.expm1(np.arange(_SUB + 1) * fine) / math.expm1(step)
    below = [np.maximum(ends[:-1] + chord * weight[j] - one, 0.0) for j, one in enumerate(cells)]
    sag = _largest(np.maximum(below[j], below[j + 1]) + local[j::_SUB] for j in range(_SUB))
    noise = np.maximum(upper - lower, 0.0) + ROUNDINGS_8 * np.abs(upper)
    few = _largest(noise[j::_SUB] for j in range(_SUB - 1))
    sag += 3 * _largest((few[:-1], noise[_SUB - 1 :: _SUB], few[1:]))  # a cell's, and three more behind it
    return ends, sag * (1 + ROUNDINGS_8)


def _largest(arrays: Iterable[Floats]) -> Floats:
    return functools.reduce(np.maximum, arrays)


def _point(step: float) -> Masses:
    return Masses(step, 0, np.array([1.0]))


def _lower(step: float, first: int, lower: Floats, upper: Floats, shift: float) -> Masses:
    """Masses of a polygon below u: by the sagitta of the cells or, where that is much too low, by extended chords."""
    zero = -first
    nodes, sag = _sagitta(lower, upper, first, step)
    at = np.minimum(zero + np.array([0, 1, nodes.size // 64, nodes.size // 8]), nodes.size - 1)

    bent = _below(step, first, nodes, _bent(nodes, sag, zero), shift)
    reached = bent.hockey_stick((at - zero) * step, upper=False)
    if (reached >= 0.5 * nodes[at]).all():
        return bent
    extended = _below(step, first, nodes, _extended(nodes, upper[1:-1:_SUB], zero, step), shift)
    return bent if reached.sum() >= extended.hockey_stick((at - zero) * step, upper=False).sum() else extended


def _bent(nodes: Floats, sag: Floats, zero: int) -> Floats:
    """Every node lowered by the sagitta of both its cells; of the last node that counts, only the cell below."""
    lowered = nodes - np.maximum(np.append(sag, 0.0), np.insert(sag, 0, 0.0))
    negative = np.flatnonzero(lowered[zero:] < 0)
    last = zero + (int(negative[0]) if negative.size else lowered.size - zero - 1)
    if last > zero and nodes[last] < sag[last - 1]:
        last -= 1
    return _ending(lowered, last)


def _extended(nodes: Floats, upper: Floats, zero: int, step: float) -> Floats:
    """Every node lowered to where the chord of the two next ones away from k = 1, extended, passes it.

    w is convex on either side of k = 1: such a chord lies below it, on both cells beside the node. Rounding may have
    hidden that w rises and then falls: bounds of later nodes hold for earlier ones.
    """
    rising, falling = np.maximum.accumulate(nodes[:zero]), np.maximum.accumulate(nodes[zero + 1 :][::-1])[::-1]
    rise = math.exp(step) * np.maximum(rising - np.append(0.0, upper[: zero - 1]), 0.0)
    rise[0] = rising[0] * math.expm1(step)
    fall = math.exp(-step) * np.maximum(falling - np.append(upper[zero + 2 :], math.inf), 0.0)
    left, right = rising + rise, falling + fall
    lowered = np.concatenate([[0.0], left[:-1], [min(left[-1], right[0])], right[1:], [0.0]]) * (1 - ROUNDINGS_8)
    return _ending(lowered, lowered.size - 1)


def _ending(lowered: Floats, last: int) -> Floats:
    """The nodes up to one at which the polygon ends in 0."""
    kept = lowered[: last + 1].copy()
    kept[0] = min(kept[0], 0.0)
    kept[-1] = 0.0
    return kept


def _below(step: float, first: int, nodes: Floats, lowered: Floats, shift: float) -> Masses:
    """Masses of the greatest convex polygon below lowered nodes, 0 from the last of them on; checked."""
    zero, last = -first, lowered.size - 1
    if last <= zero:
        return _point(step)
    original = np.arange(first, first + last + 1)
    for margin in (ROUNDINGS_8192, WIDE, WIDER):
        start = lowered - margin * np.abs(nodes[: last + 1])
        start[-1] = 0.0
        kept = _between_tangents(start, zero, step)
        index, w, mass, error = _convex(original[kept], start[kept], step, keep_last=False)
        if w[-1] == 0 and (mass > error).all() and _lies_below(index, w, original, lowered, step):
            dense = np.zeros(last + 1)
            dense[index - first] = np.maximum((mass - error) * (1 - ROUNDINGS_8), 0.0)
            return Masses(step, first, dense, shift=shift)
    return _point(step)


def _between_tangents(w: Floats, zero: int, step: float) -> np.ndarray:
    """The nodes between the tangents drawn from the two end nodes, and these: the others lie above the minorant."""
    left, right = np.arange(1, zero + 1), np.arange(zero, w.size - 1)
    kept = np.ones(w.size, dtype=bool)
    with np.errstate(divide="ignore"):
        slopes = np.log(np.maximum(w[left] - w[0], 0.0)) - left * step - np.log(-np.expm1(-left * step))
    kept[1 : 1 + int(np.argmin(slopes))] = False
    touch = zero + int(np.argmin(w[right] / -np.expm1((right - w.size + 1) * step)))
    kept[touch + 1 : -1] = False
    return kept


def _lies_below(index: np.ndarray, w: Floats, original: np.ndarray, bound: Floats, step: float) -> bool:
    """Whether the polygon through the kept knots (and (0, 0)) is below the bound at every original node."""
    cell = np.searchsorted(index, original, side="left")
    inside = cell < index.size
    cell = np.minimum(cell, index.size - 1)
    before = np.maximum(cell - 1, 0)
    from_zero, exact = cell == 0, index[cell] == original
    back, width = (original - index[cell]) * step, (index[before] - index[cell]) * step
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        near = np.expm1((index[before] - original) * step) / np.expm1(width) * np.exp(back)  # without overflow
        far = np.where(from_zero, 0.0, np.expm1(back) / np.expm1(width))
    near = np.where(from_zero, np.exp(back), near)
    value, size = w[before] * far + w[cell] * near, np.abs(w[before]) * far + np.abs(w[cell]) * near
    value = np.where(exact, w[cell], value + (ROUNDINGS_8 + ROUNDINGS_4 * np.abs(back)) * size)
    return bool((value <= bound)[inside].all())


def bound_masses(loss: Loss, step: float, first: int, last: int, *, reverse: bool) -> tuple[Masses, Masses]:
    """Lower and upper masses of one direction of a loss on the nodes first..last (first < 0 < last) of a grid.

    Guarantee: see `Masses`. The mass below the first node is raised to it (upper) or dropped (lower); what lies
    beyond the last goes to infinity (upper) or is dropped (lower).
    Reference: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, Connect the dots (the upper polygon).
    """
    own = loss.masses_on(step, reverse=reverse) if isinstance(loss, DiscreteLoss) else None
    if own is not None:
        return own
    fine = step / _SUB
    at = np.asarray(np.arange(first * _SUB - 1, last * _SUB + 2) * fine, dtype=np.float64)
    move, shift = _displaced(step)
    with np.errstate(under="ignore", over="ignore"):
        lower, upper = excess(loss, at, reverse=reverse, move=move)
        top = _upper(step, first, last, upper[1:-1:_SUB])
        if shift:
            lower, upper = excess(loss, at, reverse=reverse, shift=shift, move=move)
        bottom = _lower(step, first, lower, upper, shift)
        far = np.array([0.0, step * last / 8])
        shown = bottom.hockey_stick(far, upper=False)
        if shown[0] < 0.5 * lower[1 - first * _SUB]:  # perhaps one step hides all negative losses: move them to 0
            least = -support(loss, 1.0, reverse=reverse, left_tail=1e-60)[0]
            if shift < least < step:
                lower, upper = excess(loss, at, reverse=reverse, shift=least, move=move)
                moved = _lower(step, first, lower, upper, least)
                bottom = moved if moved.hockey_stick(far, upper=False).sum() > shown.sum() else bottom
    return bottom, top


def upper_masses(loss: Loss, step: float, first: int, last: int, *, reverse: bool) -> Masses:
    """The upper masses of `bound_masses` alone."""
    own = loss.masses_on(step, reverse=reverse) if isinstance(loss, DiscreteLoss) else None
    if own is not None:
        return own[1]
    nodes = np.asarray(np.arange(first, last + 1) * step, dtype=np.float64)
    with np.errstate(under="ignore", over="ignore"):
        upper = excess(loss, nodes, reverse=reverse, move=_displaced(step)[0])[1]
        return _upper(step, first, last, upper)


def _displaced(step: float) -> tuple[float, float]:
    """How far nodes may be rounded, relatively, and how far lower masses move: an atom near a node counts there."""
    return (0.0, 0.0) if math.frexp(step)[0] * 2.0**26 % 1 == 0 else (ROUNDINGS_4, _SHIFT)


def support(loss: Loss, tail: float, *, reverse: bool, left_tail: float | None = None) -> tuple[float, float]:
    """An interval of losses outside which w is at most `tail` (where any up to 1e5 is), or `left_tail` below 0."""

    def reach(backward: bool, weighted: bool, tail: float) -> float:
        low, high = _NEAREST, _FARTHEST
        for points in (np.geomspace(low, high, 18), None, None):
            at = np.linspace(low, high, 33) if points is None else points
            values = loss.profile(at, reverse=backward)[1]
            with np.errstate(under="ignore"):
                small = np.flatnonzero((values * np.exp(-at) if weighted else values) <= tail)
            if not small.size:
                return high
            index = int(small[0])
            if index == 0:
                return float(at[0])
            low, high = float(at[index - 1]), float(at[index])
        return high

    return -reach(not reverse, True, tail if left_tail is None else left_tail), reach(reverse, False, tail)


def coarse_step(step: float) -> float:
    """The step rounded down to 24 bits, so that every node of the grid is exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * 2**24) / 2**24, exponent)


@dataclass(frozen=True, eq=False)
class DiscreteLoss(Loss):
    """A privacy-loss distribution: lower and upper masses for each direction.

    Guarantee: lower <= truth <= upper for every eps, as far as the masses given are bounds.
    """

    lower: Masses
    upper: Masses
    reverse_lower: Masses
    reverse_upper: Masses

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.upper is self.reverse_upper and self.lower is self.reverse_lower

    @property
    def lattice(self) -> float:
        """The step of the grid: a composition on a fraction of it loses nothing."""
        return self.upper.step

    def masses_on(self, step: float, *, reverse: bool) -> tuple[Masses, Masses] | None:
        """Its own lower and upper masses, if they lie on the grid of that step."""
        low, high = (self.reverse_lower, self.reverse_upper) if reverse else (self.lower, self.upper)
        return (low, high) if step == low.step == high.step else None

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        low, high = (self.reverse_lower, self.reverse_upper) if reverse else (self.lower, self.upper)
        upper = high.hockey_stick(epsilon, upper=True)
        return np.minimum(low.hockey_stick(epsilon, upper=False), upper), upper

    @classmethod
    def of(cls, loss: Loss, *, step: float | None = None, tail: float = 1e-40, nodes: int = 2**14) -> DiscreteLoss:
        """A loss on a grid of the given step, or of about `nodes` nodes; masses below `tail` are cut."""
        tail = positive("tail", tail)
        ends = [support(loss, tail, reverse=False)]
        if not loss.symmetric:
            ends.append(support(loss, tail, reverse=True))
        width = max(end for _, end in ends) - min(start for start, _ in ends)
        size = width / count("nodes", nodes) if step is None else positive("step", step)
        size = coarse_step(size) if step is None else size
        if size > _WIDEST:
            raise ValueError(f"a step of {size:.4g} says nothing: choose one of at most {_WIDEST:g}, or more nodes")
        if width / size > NODE_LIMIT:
            raise ValueError(
                f"step {size!r} needs {width / size:.3g} nodes: choose one of at least {width / NODE_LIMIT:.3g}"
            )
        sides = []
        for backward, (start, end) in enumerate(ends):
            first, last = min(math.floor(start / size), -1), max(math.ceil(end / size), 1) + 2
            sides.append(bound_masses(loss, size, first, last, reverse=bool(backward)))
        (low, high), (back_low, back_high) = sides[0], sides[-1]
        return cls(low, high, back_low, back_high)
