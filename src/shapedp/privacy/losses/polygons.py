"""Polygons above and below the curve of a loss, with knots on a grid: where the masses of a grid come from.

The curve is u(k) = E_Q[(r - k)_+] over k = e^eps, kept as its excess w = u - (1 - k)_+. Knots are given by their index
on the grid; neighbours may be several steps apart, where little mass lies between them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_4, ROUNDINGS_8, ROUNDINGS_32, ROUNDINGS_8192, WIDE, WIDER
from shapedp.privacy.losses.masses import Masses

SUB = 4  # sub-nodes per cell: they bound how far u sags below a chord, by convexity alone
_TINY = 5e-324
_FEW = 4  # concave knots: then their tangents are looked for
_LOWERINGS = 40  # of the knot at k = 1


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


def upper_polygon(step: float, knots: np.ndarray, nodes: Floats) -> Masses:
    """Masses of the polygon through upper bounds on w at some nodes of a grid."""
    index, w, mass, error = _convex(knots, nodes, step, keep_last=True)
    first, last = int(knots[0]), int(knots[-1])
    dense = np.zeros(last - first + 1)
    dense[index - first] = np.maximum((mass + error) * (1 + ROUNDINGS_8), 0.0)
    return Masses(step, first, dense, float(w[-1]))


def widths(knots: np.ndarray, step: float) -> Floats:
    """Of all knots but the outer ones: the length in k of the cell above over that of the cell below."""
    if knots.size == knots[-1] - knots[0] + 1:  # one step apart, all of them
        return np.full(knots.size - 2, math.exp(step))
    cells = np.diff(knots) * step
    return np.asarray(np.expm1(cells[1:]) / -np.expm1(-cells[:-1]), dtype=np.float64)


def sub_nodes(knots: np.ndarray) -> np.ndarray:
    """Each cell in `SUB` parts, in units of step/SUB, with one part more before the first knot and after the last."""
    cells = np.diff(knots)
    inner = (SUB * knots[:-1, None] + cells[:, None] * np.arange(SUB)).ravel()
    return np.concatenate([[inner[0] - cells[0]], inner, SUB * knots[-1] + np.array([0, cells[-1]])])


def _sagitta(lower: Floats, upper: Floats, knots: np.ndarray, step: float) -> tuple[Floats, Floats]:
    """Nodes of u from below, and how far u may sag below the chord of each cell.

    `lower`, `upper` sit at the `sub_nodes`. Inside a sub-cell a convex u lies above the extensions of both neighbouring
    chords: the sagitta is at most a b/(a + b), with a and b the amounts by which the neighbours' slopes differ, times
    the length. Where neighbouring cells are of different length, so are the errors of a and b.
    """
    fine, cells = step / SUB, np.diff(knots)
    uneven = cells.size < knots[-1] - knots[0]
    rise = np.diff(lower)
    grow = widths(sub_nodes(knots), fine) if uneven else np.full(2, math.exp(fine))
    after, before = (grow[:-1], grow[1:]) if uneven else (grow[:1], grow[:1])
    a = rise[1:-1] - rise[:-2] * after
    b = rise[2:] / before - rise[1:-1]
    zero = int(np.searchsorted(knots, 0)) * SUB  # the sub-cell that starts at k = 1
    if 0 <= zero < a.size:
        a[zero] += math.expm1(fine * cells[zero // SUB])
    if 0 <= zero - 1 < b.size:
        b[zero - 1] += -math.expm1(-fine * cells[zero // SUB - 1])
    a, b = np.maximum(a, 0.0), np.maximum(b, 0.0)
    total = a + b
    local = a * (b / np.where(total > 0, total, 1.0))  # a b may underflow
    inner = lower[1:-1]
    ends = inner[::SUB].copy()
    parts, chord = [inner[j:-1:SUB] for j in range(SUB)] + [ends[1:]], np.diff(ends)  # by place within a cell
    place = [j * fine * (cells if uneven else 1.0) for j in range(SUB + 1)]
    below = [
        np.maximum(ends[:-1] + chord * (np.expm1(x) / np.expm1(place[SUB])) - one, 0.0)
        for x, one in zip(place, parts, strict=True)
    ]
    sag = _largest(np.maximum(below[j], below[j + 1]) + local[j::SUB] for j in range(SUB))
    noise = np.maximum(upper - lower, 0.0) + (ROUNDINGS_32 if uneven else ROUNDINGS_8) * np.abs(upper)
    few = _largest(noise[j::SUB] for j in range(SUB - 1))
    # a is off by 1 + grow times the noise, b by 1 + 1/grow: on even grids 3 is enough up to e^fine = 2
    wide = uneven or float(grow[0]) > 2
    amplified = 3 * max(1.0, float(grow.max()), 1 / float(grow.min())) if wide else 3.0
    sag += amplified * _largest((few[:-1], noise[SUB - 1 :: SUB], few[1:]))  # a cell's, and three more behind it
    return ends, sag * (1 + ROUNDINGS_8)


def _largest(arrays: Iterable[Floats]) -> Floats:
    return functools.reduce(np.maximum, arrays)


def _point(step: float) -> Masses:
    return Masses(step, 0, np.array([1.0]))


def lower_polygon(step: float, knots: np.ndarray, lower: Floats, upper: Floats, shift: float) -> Masses:
    """Masses of a polygon below u: by the sagitta of the cells or, where that is much too low, by extended chords."""
    zero = int(np.searchsorted(knots, 0))
    nodes, sag = _sagitta(lower, upper, knots, step)
    at = np.minimum(zero + np.array([0, 1, nodes.size // 64, nodes.size // 8]), nodes.size - 1)
    bent = _below(step, knots, nodes, _bent(nodes, sag, zero), shift)
    reached = bent.about(knots[at] * step)
    if (reached >= 0.5 * nodes[at]).all():
        return bent
    cell = step * int(knots[1] - knots[0])
    extended = _below(step, knots, nodes, _extended(nodes, upper[1:-1:SUB], zero, widths(knots, step), cell), shift)
    return bent if reached.sum() >= extended.about(knots[at] * step).sum() else extended


def _bent(nodes: Floats, sag: Floats, zero: int) -> Floats:
    """Every node lowered by the sagitta of both its cells; of the last node that counts, only the cell below."""
    lowered = nodes - np.maximum(np.append(sag, 0.0), np.insert(sag, 0, 0.0))
    negative = np.flatnonzero(lowered[zero:] < 0)
    last = zero + (int(negative[0]) if negative.size else lowered.size - zero - 1)
    if last > zero and nodes[last] < sag[last - 1]:
        last -= 1
    return _ending(lowered, last)


def _extended(nodes: Floats, upper: Floats, zero: int, grow: Floats, first: float) -> Floats:
    """Every node lowered to where the chord of the two next ones away from k = 1, extended, passes it.

    w is convex on either side of k = 1: such a chord lies below it, on both cells beside the node. Rounding may have
    hidden that w rises and then falls: bounds of later nodes hold for earlier ones. `grow`: see `widths`; `first` is
    the length of the first cell.
    """
    rising, falling = np.maximum.accumulate(nodes[:zero]), np.maximum.accumulate(nodes[zero + 1 :][::-1])[::-1]
    rise = np.append(math.exp(first), grow[: zero - 1]) * np.maximum(rising - np.append(0.0, upper[: zero - 1]), 0.0)
    rise[0] = rising[0] * math.expm1(first)
    fall = 1 / np.append(grow[zero:], 1.0) * np.maximum(falling - np.append(upper[zero + 2 :], math.inf), 0.0)
    left, right = rising + rise, falling + fall
    lowered = np.concatenate([[0.0], left[:-1], [min(left[-1], right[0])], right[1:], [0.0]]) * (1 - ROUNDINGS_32)
    return _ending(lowered, lowered.size - 1)


def _ending(lowered: Floats, last: int) -> Floats:
    """The nodes up to one at which the polygon ends in 0."""
    kept = lowered[: last + 1].copy()
    kept[0] = min(kept[0], 0.0)
    kept[-1] = 0.0
    return kept


def _below(step: float, knots: np.ndarray, nodes: Floats, lowered: Floats, shift: float) -> Masses:
    """Masses of the greatest convex polygon below lowered nodes, 0 from the last of them on; checked."""
    zero, last = int(np.searchsorted(knots, 0)), lowered.size - 1
    if last <= zero:
        return _point(step)
    original, first = knots[: last + 1], int(knots[0])
    size = np.maximum(np.abs(nodes[: last + 1]), np.abs(lowered))  # one may be 0 where the other is a line through 0
    for margin in (ROUNDINGS_8192, WIDE, WIDER):
        start = lowered - margin * size
        start[-1] = 0.0
        kept = _between_tangents(original, start, zero, step)
        index, w, mass, error = _convex(original[kept], start[kept], step, keep_last=False)
        if w[-1] == 0 and (mass > error).all() and _lies_below(index, w, original, lowered, step):
            dense = np.zeros(int(original[-1]) - first + 1)
            dense[index - first] = np.maximum((mass - error) * (1 - ROUNDINGS_8), 0.0)
            return Masses(step, first, dense, shift=shift)
    return _point(step)


def _between_tangents(knots: np.ndarray, w: Floats, zero: int, step: float) -> np.ndarray:
    """The nodes between the tangents drawn from the two end nodes, and these: the others lie above the minorant."""
    right, kept = np.arange(zero, w.size - 1), np.ones(w.size, dtype=bool)
    left = (knots[1 : zero + 1] - knots[0]) * step
    with np.errstate(divide="ignore"):
        slopes = np.log(np.maximum(w[1 : zero + 1] - w[0], 0.0)) - left - np.log(-np.expm1(-left))
    kept[1 : 1 + int(np.argmin(slopes))] = False
    touch = zero + int(np.argmin(w[right] / -np.expm1((knots[right] - knots[-1]) * step)))
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
